package sim

import (
	"fmt"
	"slices"
	"time"

	"kumo/internal/cluster/member"
)

// faults injects faults at random times and repairs them.
type faults struct {
	w           *world
	stopped     bool
	repairs     []func() // repair functions of all faults so far
	kinds       []fault
	totalWeight int // sum of the kinds' weights
}

// A fault is a kind of fault, of the cluster (inject) or of one process (injectInto), with its relative frequency. The
// function returns a description of what it did and a function that repairs it; nil if the fault ends by itself.
type fault struct {
	weight     int
	inject     func(f *faults) (what string, end func())
	injectInto func(f *faults, p *process) (what string, end func())
}

// faultKinds are the faults of every run. Runs with VarySpeeds add another.
var faultKinds = []fault{
	{6, nil, (*faults).kill},
	{3, nil, (*faults).wipe},
	{5, nil, (*faults).pause},
	{3, (*faults).isolateMinority, nil},
	{1, (*faults).isolateHalf, nil},
	{2, (*faults).isolateOneWay, nil},
	{3, (*faults).isolateFromRegistry, nil},
	{2, (*faults).degradeNetwork, nil},
	{2, (*faults).stopLeader, nil},
	{3, nil, (*faults).leave},
	{3, (*faults).join, nil},
}

func (f *faults) begin() {
	f.kinds = faultKinds
	if f.w.cfg.VarySpeeds {
		f.kinds = append(slices.Clone(faultKinds), fault{5, nil, (*faults).throttle})
	}
	for _, k := range f.kinds {
		f.totalWeight += k.weight
	}
	if f.w.cfg.FaultEvery > 0 {
		f.w.k.after(f.w.cfg.FaultDelay, f.injectNext)
	}
}

// injectNext injects a random fault and schedules the next.
func (f *faults) injectNext() {
	if f.stopped {
		return
	}
	f.w.k.after(f.w.k.exponential(f.w.cfg.FaultEvery), f.injectNext)
	n := f.w.k.rng.IntN(f.totalWeight)
	for _, k := range f.kinds {
		if n -= k.weight; n < 0 {
			f.inject(k)
			return
		}
	}
}

func (f *faults) inject(k fault) {
	var what string
	var end func()
	if k.inject != nil {
		what, end = k.inject(f)
	} else if running := f.w.processes(); len(running) > 0 {
		what, end = k.injectInto(f, running[f.w.k.rng.IntN(len(running))])
	}
	if what == "" {
		return
	}
	f.w.figures.Faults++
	f.w.logEvent("FAULT: %s", what)
	f.w.updateReachability()
	if end == nil {
		return
	}
	done := false
	once := func() {
		if !done {
			done = true
			end()
			f.w.updateReachability()
		}
	}
	f.repairs = append(f.repairs, once)
	f.w.k.after(f.w.k.uniform(300*time.Millisecond, f.w.cfg.Timing.TTL*4), once)
}

func (f *faults) end() {
	f.stopped = true
	for _, end := range f.repairs {
		end()
	}
}

// updateReachability records since when each machine cannot reach the registry, and resumes the watches of those that
// can again.
func (w *world) updateReachability() {
	for _, m := range w.machines {
		switch reach := !w.reg.leaderless && w.net.reaches(m.index); {
		case reach:
			m.cutSince = forever
		case m.cutSince == forever:
			m.cutSince = w.k.now
		}
	}
	w.reg.resume()
}

func (f *faults) kill(p *process) (string, func()) {
	p.end()
	return fmt.Sprintf("%s is killed", p.node), func() { f.restart(p.m) }
}

func (f *faults) wipe(p *process) (string, func()) {
	what, end := f.kill(p)
	p.m.journal = nil
	return what + ", and its disk is lost", end
}

// restart starts a new process on a machine, even if the old one was about to leave.
func (f *faults) restart(m *machine) {
	m.shouldRun = true
	f.w.begin(m)
}

func (f *faults) pause(p *process) (string, func()) {
	if p.paused {
		return "", nil
	}
	p.pause()
	p.slips = 0
	return fmt.Sprintf("%s is paused", p.node), func() {
		if !p.ended {
			p.resume()
			f.w.logEvent("%s goes on", p.node)
		}
	}
}

// isolateMachines puts n random machines behind a partition.
func (f *faults) isolateMachines(c *partition, n int, how string) (string, func()) {
	c.isolated = map[int]bool{}
	names := ""
	for _, i := range f.w.k.rng.Perm(len(f.w.machines))[:min(n, len(f.w.machines))] {
		c.isolated[i] = true
		names += fmt.Sprintf(" n%d", i)
	}
	f.w.net.partitions = append(f.w.net.partitions, c)
	return fmt.Sprintf("%s:%s", how, names), func() {
		f.w.net.heal(c)
		f.w.logEvent("healed: %s:%s", how, names)
	}
}

// maxIsolated bounds the machines that a minority partition isolates. Each abandoned machine costs an epoch, which all
// the others must learn.
const maxIsolated = 25

func (f *faults) isolateMinority() (string, func()) {
	few := 1 + f.w.k.rng.IntN(min(max(1, len(f.w.machines)/3), maxIsolated))
	return f.isolateMachines(&partition{out: true, in: true}, few, "a minority is isolated")
}

func (f *faults) isolateHalf() (string, func()) {
	if len(f.w.machines) > 8*maxIsolated {
		return "", nil
	}
	return f.isolateMachines(&partition{out: true, in: true}, (len(f.w.machines)+1)/2,
		"half of the machines are isolated from the registry")
}

func (f *faults) isolateOneWay() (string, func()) {
	out := f.w.k.chance(0.5)
	how := map[bool]string{true: "cannot send", false: "cannot receive"}[out]
	return f.isolateMachines(&partition{out: out, in: !out}, 1+f.w.k.rng.IntN(3), how)
}

func (f *faults) isolateFromRegistry() (string, func()) {
	return f.isolateMachines(&partition{out: true, in: true, registryOnly: true}, 1+f.w.k.rng.IntN(3),
		"isolated from the registry only")
}

func (f *faults) degradeNetwork() (string, func()) {
	net, k := f.w.net, f.w.k
	net.loss, net.dup, net.slowdown = 0.3*k.rng.Float64(), 0.3*k.rng.Float64(), 1+20*k.rng.Float64()
	return fmt.Sprintf("%.0f %% of messages lost, %.0f %% duplicated, network %.0f times slower", net.loss*100,
			net.dup*100, net.slowdown),
		func() {
			net.loss, net.dup, net.slowdown = f.w.cfg.Loss, f.w.cfg.Loss, 1
			f.w.logEvent("the network has recovered")
		}
}

// throttle slows a machine down, for longer than other faults last.
func (f *faults) throttle(p *process) (string, func()) {
	if p.m.throttled > 1 {
		return "", nil
	}
	m := p.m
	m.throttled = 2 + 18*f.w.k.rng.Float64()
	f.w.k.after(f.w.k.uniform(10*time.Second, 2*time.Minute), func() {
		m.throttled = 1
		f.w.logEvent("n%d is back at its usual speed", m.index)
	})
	return fmt.Sprintf("n%d becomes %.0f times slower", m.index, m.throttled), nil
}

func (f *faults) stopLeader() (string, func()) {
	if f.w.reg.leaderless {
		return "", nil
	}
	f.w.reg.leaderless = true
	back := func() {
		f.w.reg.leaderless = false
		f.w.logEvent("the registry has a leader again")
		f.w.updateReachability()
	}
	most := 12 * time.Second
	if f.w.k.chance(0.1) {
		most = 2 * f.w.cfg.Timing.TTL
	}
	f.w.k.after(f.w.k.uniform(time.Second, most), back)
	return "the registry has no leader", nil
}

func (f *faults) leave(p *process) (string, func()) {
	if len(f.w.processes()) <= f.w.cfg.Nodes/2 {
		return "", nil
	}
	p.addEvent(member.Leave{})
	p.m.shouldRun = false
	return fmt.Sprintf("%s is asked to leave", p.node), nil
}

// join starts a machine that left, or a new one.
func (f *faults) join() (string, func()) {
	for _, m := range f.w.machines {
		if m.departed {
			m.departed, m.shouldRun = false, true
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
