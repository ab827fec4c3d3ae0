package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// meshFaults draws what goes wrong, and when.
type meshFaults struct {
	w    *meshWorld
	dead []*meshNode // that do not run, and have their disks
	cuts []*cut
}

func (f *meshFaults) begin() {
	w := f.w
	if w.cfg.Leap > 0 {
		w.k.after(w.k.about(leapEvery), f.leaps)
	}
	switch {
	case w.cfg.Stay > 0:
		f.goes()
	case w.cfg.FaultEvery > 0:
		w.k.after(w.k.about(w.cfg.FaultEvery), f.next)
		f.watch()
	}
}

// A repair takes less than repairs, for a node that runs and can be reached.
const repairs = 20 * time.Second

// watch counts how long each node has been able to give what it knows to others since disks were lost. Of those who
// have a copy somebody must be, before more are lost: a node that is cut off, or stands still, repairs nothing.
func (f *meshFaults) watch() {
	w := f.w
	if w.calm {
		return
	}
	w.k.after(time.Second, f.watch)
	for _, p := range w.live {
		hindered := func(c *cut) bool { return c.side[p.n.place] }
		switch {
		case p.n.able >= repairs:
		case p.paused || slices.ContainsFunc(f.cuts, hindered):
			p.n.able = 0
		default:
			p.n.able += time.Second
		}
	}
}

// wipe takes the disks of a node and some others.
func (f *meshFaults) wipe(p *meshProcess) {
	w := f.w
	var all []*meshProcess
	for range w.cfg.Wipes {
		// what a node had that is lost while it leaves nobody fetches again
		spared := w.cfg.Place && p.leaving
		if (w.wiped == 0 || p.n.able >= repairs) && !slices.Contains(all, p) && !spared {
			all = append(all, p)
		}
		p = f.any()
	}
	for _, p := range all {
		w.tell("FAULT: %s is killed, and its disk is gone", p.n.name)
		p.end()
		p.n.wipe()
	}
	if len(all) > 0 {
		for _, n := range w.nodes {
			n.able = 0
		}
	}
}

// goes lets nodes go and come, so that each stays so long in the mean.
func (f *meshFaults) goes() {
	w := f.w
	w.k.after(w.k.about(w.cfg.Stay/time.Duration(max(len(w.live), 1))), func() {
		if w.calm {
			return
		}
		w.figures.Faults++
		n := f.any().n
		n.proc.end()
		if w.k.rng.IntN(2) == 0 {
			n.wipe()
			w.join()
		} else {
			w.k.after(w.k.about(w.cfg.Stay/4), func() {
				if n.proc == nil && n.disk != nil {
					n.start()
				}
			})
			f.dead = append(f.dead, n)
		}
		f.goes()
	})
}

// leapEvery is the mean time between two leaps of clocks.
const leapEvery = 15 * time.Second

func (f *meshFaults) leaps() {
	w := f.w
	if w.calm {
		return
	}
	w.k.after(w.k.about(leapEvery), f.leaps)
	w.figures.Leaps++
	f.any().leap(w.cfg.Leap)
}

func (f *meshFaults) any() *meshProcess { return f.w.live[f.w.k.rng.IntN(len(f.w.live))] }

// staying is how many nodes there are that are not about to leave.
func (f *meshFaults) staying() (n int) {
	for _, p := range f.w.live {
		if !p.leaving {
			n++
		}
	}
	return n
}

func (f *meshFaults) next() {
	w := f.w
	if w.calm {
		return
	}
	w.k.after(w.k.about(w.cfg.FaultEvery), f.next)
	p, enough := f.any(), f.staying() > 4
	w.figures.Faults++
	switch what := w.k.rng.IntN(14); {
	case what < 3 && enough:
		w.tell("FAULT: %s is killed", p.n.name)
		p.end()
		f.dead = append(f.dead, p.n)
	case what < 5 && len(f.dead) > 0:
		i := w.k.rng.IntN(len(f.dead))
		w.tell("%s is started again", f.dead[i].name)
		f.dead[i].start()
		f.dead = slices.Delete(f.dead, i, i+1)
	case what < 6 && enough && len(f.dead) < 3 && w.k.now-w.wiped > w.cfg.Repair:
		f.wipe(p)
	case what < 7 && enough:
		w.tell("FAULT: %s is asked to leave", p.n.name)
		p.leave()
	case what < 9:
		w.tell("FAULT: %s comes", w.join().name)
	case what < 10 && len(f.cuts) == 0 && !w.cfg.NoCuts:
		f.cut()
	case what < 11: // while answers to what it has asked are on their way
		w.tell("FAULT: %s is killed and started again", p.n.name)
		p.end()
		p.n.start()
	default:
		w.tell("FAULT: %s stands still", p.n.name)
		w.pause(p, w.k.between(time.Second, 40*time.Second))
	}
}

func (w *meshWorld) pause(p *meshProcess, d time.Duration) {
	if p.paused {
		return
	}
	p.pause()
	w.k.after(d, func() {
		if !p.ended && p.paused {
			p.resume()
			w.tell("%s goes on", p.n.name)
		}
	})
}

func (f *meshFaults) cut() {
	w := f.w
	c := &cut{side: map[int]bool{}, out: true, in: w.k.rng.IntN(3) > 0}
	for range 1 + w.k.rng.IntN(max(len(w.live)/2, 1)) {
		c.side[f.any().n.place] = true
	}
	w.tell("FAULT: %s", describeCut(c))
	w.net.cuts = append(w.net.cuts, c)
	f.cuts = append(f.cuts, c)
	w.k.after(w.k.between(2*time.Second, time.Minute), func() { f.heal(c) })
}

func describeCut(c *cut) string {
	how := "cannot send:"
	if c.in {
		how = "are cut off:"
	}
	for _, place := range slices.Sorted(maps.Keys(c.side)) {
		how += fmt.Sprintf(" n%d", place)
	}
	return how
}

func (f *meshFaults) heal(c *cut) {
	f.w.tell("healed: %s", describeCut(c))
	f.w.net.heal(c)
	f.w.healed = f.w.k.now
	f.cuts = slices.DeleteFunc(f.cuts, func(d *cut) bool { return d == c })
}

func (f *meshFaults) end() {
	f.w.calm = true
	for _, c := range slices.Clone(f.cuts) {
		f.heal(c)
	}
	for _, n := range f.dead {
		if n.proc == nil && n.disk != nil {
			n.start()
		}
	}
}
