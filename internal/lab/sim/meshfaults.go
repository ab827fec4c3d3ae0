package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// meshFaults draws what goes wrong, and when.
type meshFaults struct {
	w          *meshWorld
	dead       []*meshNode // that do not run, and have their disks
	partitions []*partition
}

func (f *meshFaults) begin() {
	w := f.w
	if w.cfg.ClockLeap > 0 {
		w.k.after(w.k.exponential(leapInterval), f.leapNext)
	}
	switch {
	case w.cfg.MeanStay > 0:
		f.churn()
	case w.cfg.FaultEvery > 0:
		w.k.after(w.k.exponential(w.cfg.FaultEvery), f.next)
		f.trackRepairs()
	}
}

// A repair takes less than repairs, for a node that runs and can be reached.
const repairTime = 20 * time.Second

// trackRepairs counts how long each node has been able to give what it knows to others since disks were lost. Of those who
// have a copy somebody must be, before more are lost: a node that is cut off, or stands still, repairs nothing.
func (f *meshFaults) trackRepairs() {
	w := f.w
	if w.faultsEnded {
		return
	}
	w.k.after(time.Second, f.trackRepairs)
	for _, p := range w.live {
		hindered := func(c *partition) bool { return c.isolated[p.n.place] }
		switch {
		case p.n.repairedFor >= repairTime:
		case p.paused || slices.ContainsFunc(f.partitions, hindered):
			p.n.repairedFor = 0
		default:
			p.n.repairedFor += time.Second
		}
	}
}

// wipe takes the disks of a node and some others.
func (f *meshFaults) wipe(p *meshProcess) {
	w := f.w
	var all []*meshProcess
	for range w.cfg.WipesAtOnce {
		// text a node had that is lost while it leaves nobody fetches again
		spared := w.cfg.Storage && p.leaving
		if (w.lastWipe == 0 || p.n.repairedFor >= repairTime) && !slices.Contains(all, p) && !spared {
			all = append(all, p)
		}
		p = f.any()
	}
	for _, p := range all {
		w.logEvent("FAULT: %s is killed, and its disk is gone", p.n.name)
		p.end()
		p.n.wipe()
	}
	if len(all) > 0 {
		for _, n := range w.nodes {
			n.repairedFor = 0
		}
	}
}

// churn lets nodes go and come, so that each stays so long in the mean.
func (f *meshFaults) churn() {
	w := f.w
	w.k.after(w.k.exponential(w.cfg.MeanStay/time.Duration(max(len(w.live), 1))), func() {
		if w.faultsEnded {
			return
		}
		w.figures.Faults++
		n := f.any().n
		n.proc.end()
		if w.k.rng.IntN(2) == 0 {
			n.wipe()
			w.join()
		} else {
			w.k.after(w.k.exponential(w.cfg.MeanStay/4), func() {
				if n.proc == nil && n.disk != nil {
					n.start()
				}
			})
			f.dead = append(f.dead, n)
		}
		f.churn()
	})
}

// leapInterval is the mean time between two leaps of clocks.
const leapInterval = 15 * time.Second

func (f *meshFaults) leapNext() {
	w := f.w
	if w.faultsEnded {
		return
	}
	w.k.after(w.k.exponential(leapInterval), f.leapNext)
	w.figures.Leaps++
	f.any().leap(w.cfg.ClockLeap)
}

func (f *meshFaults) any() *meshProcess { return f.w.live[f.w.k.rng.IntN(len(f.w.live))] }

// countStaying is how many nodes there are that are not about to leave.
func (f *meshFaults) countStaying() (n int) {
	for _, p := range f.w.live {
		if !p.leaving {
			n++
		}
	}
	return n
}

func (f *meshFaults) next() {
	w := f.w
	if w.faultsEnded {
		return
	}
	w.k.after(w.k.exponential(w.cfg.FaultEvery), f.next)
	p, enough := f.any(), f.countStaying() > 4
	w.figures.Faults++
	switch what := w.k.rng.IntN(14); {
	case what < 3 && enough:
		w.logEvent("FAULT: %s is killed", p.n.name)
		p.end()
		f.dead = append(f.dead, p.n)
	case what < 5 && len(f.dead) > 0:
		i := w.k.rng.IntN(len(f.dead))
		w.logEvent("%s is started again", f.dead[i].name)
		f.dead[i].start()
		f.dead = slices.Delete(f.dead, i, i+1)
	case what < 6 && enough && len(f.dead) < 3 && w.k.now-w.lastWipe > w.cfg.WipeInterval:
		f.wipe(p)
	case what < 7 && enough:
		w.logEvent("FAULT: %s is asked to leave", p.n.name)
		p.leave()
	case what < 9:
		w.logEvent("FAULT: %s comes", w.join().name)
	case what < 10 && len(f.partitions) == 0 && !w.cfg.NoCuts:
		f.partition()
	case what < 11: // while answers to what it has asked are on their way
		w.logEvent("FAULT: %s is killed and started again", p.n.name)
		p.end()
		p.n.start()
	default:
		w.logEvent("FAULT: %s stands still", p.n.name)
		w.pause(p, w.k.uniform(time.Second, 40*time.Second))
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
			w.logEvent("%s goes on", p.n.name)
		}
	})
}

func (f *meshFaults) partition() {
	w := f.w
	c := &partition{isolated: map[int]bool{}, out: true, in: w.k.rng.IntN(3) > 0}
	for range 1 + w.k.rng.IntN(max(len(w.live)/2, 1)) {
		c.isolated[f.any().n.place] = true
	}
	w.logEvent("FAULT: %s", describePartition(c))
	w.net.partitions = append(w.net.partitions, c)
	f.partitions = append(f.partitions, c)
	w.k.after(w.k.uniform(2*time.Second, time.Minute), func() { f.heal(c) })
}

func describePartition(c *partition) string {
	how := "cannot send:"
	if c.in {
		how = "are cut off:"
	}
	for _, place := range slices.Sorted(maps.Keys(c.isolated)) {
		how += fmt.Sprintf(" n%d", place)
	}
	return how
}

func (f *meshFaults) heal(c *partition) {
	f.w.logEvent("healed: %s", describePartition(c))
	f.w.net.heal(c)
	f.w.lastHeal = f.w.k.now
	f.partitions = slices.DeleteFunc(f.partitions, func(d *partition) bool { return d == c })
}

func (f *meshFaults) end() {
	f.w.faultsEnded = true
	for _, c := range slices.Clone(f.partitions) {
		f.heal(c)
	}
	for _, n := range f.dead {
		if n.proc == nil && n.disk != nil {
			n.start()
		}
	}
}
