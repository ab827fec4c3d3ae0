package sim

import (
	"fmt"
	"slices"
	"time"

	"kumo/internal/cluster/member"
)

// faults draws what goes wrong, and when.
type faults struct {
	w      *world
	over   bool
	ends   []func() // what sets right what is still wrong
	kinds  []fault
	chance int // sum of their weights
}

// A fault is a way things go wrong, in general or for a process, and how often beside others. It returns what it did,
// in words, and what sets it right; nil if that comes by itself.
type fault struct {
	weight int
	strike func(f *faults) (what string, end func())
	hit    func(f *faults, p *process) (what string, end func())
}

// kinds are all faults, but for those of machines that differ.
var kinds = []fault{
	{6, nil, (*faults).kill},
	{3, nil, (*faults).wipe},
	{5, nil, (*faults).pause},
	{3, (*faults).isolate, nil},
	{1, (*faults).halve, nil},
	{2, (*faults).deafen, nil},
	{3, (*faults).unregister, nil},
	{2, (*faults).noise, nil},
	{2, (*faults).election, nil},
	{3, nil, (*faults).leave},
	{3, (*faults).join, nil},
}

func (f *faults) begin() {
	f.kinds = kinds
	if f.w.cfg.Speeds {
		f.kinds = append(slices.Clone(kinds), fault{5, nil, (*faults).throttle})
	}
	for _, k := range f.kinds {
		f.chance += k.weight
	}
	if f.w.cfg.FaultEvery > 0 {
		f.w.k.after(f.w.cfg.Quiet, f.next)
	}
}

// next strikes, and plans the next one.
func (f *faults) next() {
	if f.over {
		return
	}
	f.w.k.after(f.w.k.about(f.w.cfg.FaultEvery), f.next)
	n := f.w.k.rng.IntN(f.chance)
	for _, k := range f.kinds {
		if n -= k.weight; n < 0 {
			f.strike(k)
			return
		}
	}
}

func (f *faults) strike(k fault) {
	var what string
	var end func()
	if k.strike != nil {
		what, end = k.strike(f)
	} else if running := f.w.processes(); len(running) > 0 {
		what, end = k.hit(f, running[f.w.k.rng.IntN(len(running))])
	}
	if what == "" {
		return
	}
	f.w.figures.Faults++
	f.w.tell("FAULT: %s", what)
	f.w.reached()
	if end == nil {
		return
	}
	done := false
	once := func() {
		if !done {
			done = true
			end()
			f.w.reached()
		}
	}
	f.ends = append(f.ends, once)
	f.w.k.after(f.w.k.between(300*time.Millisecond, f.w.cfg.Timing.TTL*4), once)
}

func (f *faults) end() {
	f.over = true
	for _, end := range f.ends {
		end()
	}
}

// reached notes which machines the registry is out of reach of, and tells anew those that it can reach again.
func (w *world) reached() {
	for _, m := range w.machines {
		switch reach := !w.reg.away && w.net.reaches(m.index); {
		case reach:
			m.cutAt = forever
		case m.cutAt == forever:
			m.cutAt = w.k.now
		}
	}
	w.reg.resume()
}

func (f *faults) kill(p *process) (string, func()) {
	p.end()
	return fmt.Sprintf("%s is killed", p.node), func() { f.revive(p.m) }
}

func (f *faults) wipe(p *process) (string, func()) {
	what, end := f.kill(p)
	p.m.journal = nil
	return what + ", and its disk is gone", end
}

// revive begins a process anew, whatever the last one was about to do.
func (f *faults) revive(m *machine) {
	m.wanted = true
	f.w.begin(m)
}

func (f *faults) pause(p *process) (string, func()) {
	if p.paused {
		return "", nil
	}
	p.pause()
	p.slips = 0
	return fmt.Sprintf("%s stands still", p.node), func() {
		if !p.ended {
			p.resume()
			f.w.tell("%s goes on", p.node)
		}
	}
}

// cutOff cuts so many machines off, drawn by chance.
func (f *faults) cutOff(c *cut, n int, how string) (string, func()) {
	c.side = map[int]bool{}
	names := ""
	for _, i := range f.w.k.rng.Perm(len(f.w.machines))[:min(n, len(f.w.machines))] {
		c.side[i] = true
		names += fmt.Sprintf(" n%d", i)
	}
	f.w.net.cuts = append(f.w.net.cuts, c)
	return fmt.Sprintf("%s:%s", how, names), func() {
		f.w.net.heal(c)
		f.w.tell("healed: %s:%s", how, names)
	}
}

// many is how many machines are cut off at once, at most, unless it is half of them: each that is given up is an epoch,
// which all the others hear of.
const many = 25

func (f *faults) isolate() (string, func()) {
	few := 1 + f.w.k.rng.IntN(min(max(1, len(f.w.machines)/3), many))
	return f.cutOff(&cut{out: true, in: true}, few, "a minority is cut off")
}

func (f *faults) halve() (string, func()) {
	if len(f.w.machines) > 8*many {
		return "", nil
	}
	return f.cutOff(&cut{out: true, in: true}, (len(f.w.machines)+1)/2, "a half without the registry")
}

func (f *faults) deafen() (string, func()) {
	out := f.w.k.chance(0.5)
	how := map[bool]string{true: "cannot send", false: "cannot receive"}[out]
	return f.cutOff(&cut{out: out, in: !out}, 1+f.w.k.rng.IntN(3), how)
}

func (f *faults) unregister() (string, func()) {
	return f.cutOff(&cut{out: true, in: true, registry: true}, 1+f.w.k.rng.IntN(3), "cut off from the registry alone")
}

func (f *faults) noise() (string, func()) {
	net, k := f.w.net, f.w.k
	net.loss, net.dup, net.slow = 0.3*k.rng.Float64(), 0.3*k.rng.Float64(), 1+20*k.rng.Float64()
	return fmt.Sprintf("%.0f %% lost, %.0f %% double, all %.0f times slower", net.loss*100, net.dup*100, net.slow),
		func() {
			net.loss, net.dup, net.slow = f.w.cfg.Loss, f.w.cfg.Loss, 1
			f.w.tell("the network is as before")
		}
}

// throttle makes a machine slow, for longer than other faults last.
func (f *faults) throttle(p *process) (string, func()) {
	if p.m.throttled > 1 {
		return "", nil
	}
	m := p.m
	m.throttled = 2 + 18*f.w.k.rng.Float64()
	f.w.k.after(f.w.k.between(10*time.Second, 2*time.Minute), func() {
		m.throttled = 1
		f.w.tell("n%d is as fast as before", m.index)
	})
	return fmt.Sprintf("n%d becomes %.0f times slower", m.index, m.throttled), nil
}

func (f *faults) election() (string, func()) {
	if f.w.reg.away {
		return "", nil
	}
	f.w.reg.away = true
	back := func() {
		f.w.reg.away = false
		f.w.tell("the registry is back")
		f.w.reached()
	}
	most := 12 * time.Second
	if f.w.k.chance(0.1) {
		most = 2 * f.w.cfg.Timing.TTL
	}
	f.w.k.after(f.w.k.between(time.Second, most), back)
	return "the registry has no leader", nil
}

func (f *faults) leave(p *process) (string, func()) {
	if len(f.w.processes()) <= f.w.cfg.Nodes/2 {
		return "", nil
	}
	p.tell(member.Leave{})
	p.m.wanted = false
	return fmt.Sprintf("%s is asked to leave", p.node), nil
}

// join brings a machine back that left, or a new one.
func (f *faults) join() (string, func()) {
	for _, m := range f.w.machines {
		if m.gone {
			m.gone, m.wanted = false, true
			f.w.begin(m)
			return fmt.Sprintf("%s comes", m.node), nil
		}
	}
	if len(f.w.machines) >= f.w.cfg.Nodes+f.w.cfg.Nodes/4+1 {
		return "", nil
	}
	m := f.w.addMachine(len(f.w.machines))
	f.w.begin(m)
	return fmt.Sprintf("%s comes", m.node), nil
}
