package sim

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// layout identifies the configuration that all nodes of a run share.
const layout = "sim"

// A machine has a disk and runs the processes of a node, one after another.
type machine struct {
	index      int
	identities int           // number of identities so far
	node       strategy.Node // current identity
	journal    *journal      // on the disk
	proc       *process      // nil while none runs
	offset     time.Duration // of its clock
	drift      float64       // relative error of its clock's rate
	shouldRun  bool          // a process that ends is started again
	cutSince   moment        // since when it cannot reach the registry; forever if it can
	departed   bool          // left permanently

	slowness  float64 // request time relative to the fastest machine's
	throttled float64 // further factor, changed by faults

	fetched     int           // pages
	busyTime    time.Duration // worker time spent on requests
	first, last moment        // start of the first request, end of the last
}

// A process is one run of a node's program.
type process struct {
	w        *world
	m        *machine
	node     strategy.Node
	instance uint64
	slips    int // requests that violated a delay because of the last pause
	tasks

	driver   *driver.Driver
	strategy strategy.Strategy // nil for a Placer
	stepping bool              // a driver step is scheduled
	wakes    uint64
	watcher  *watcher

	view            member.View
	journal         *journal
	state           *nodeState
	received        int64 // chunks and links received from others
	seeds           int64 // received
	unshippedSeeds  int   // seeds that are not shipped yet
	expiryScheduled bool  // a check at the end of the lease is scheduled
	workers
	linkExchange
}

func (p *process) now() time.Time { return p.m.clock(p.w.k.now) }

func (m *machine) clock(t moment) time.Time {
	return began.Add(m.offset + t + time.Duration(float64(t)*m.drift))
}

// begin starts a process on a machine, with the state on its disk.
func (w *world) begin(m *machine) {
	if m.proc != nil || m.departed {
		return
	}
	w.identify(m)
	p := w.newProcess(m)
	m.proc = p
	w.logEvent("%s starts (process %d)", p.node, p.instance)
	p.ship()
	p.start()
	p.heartbeat()
	for _, h := range p.state.sortedHosts() {
		p.scheduleHost(p.state.hosts[h])
	}
	p.pump()
}

func (w *world) newProcess(m *machine) *process {
	w.instances++
	p := &process{w: w, m: m, node: m.node, instance: w.instances, journal: m.journal, view: emptyView{},
		tasks: tasks{lifecycle: lifecycle{k: w.k}, all: map[*task]bool{}}, linkExchange: linkExchange{recent: map[url]bool{}}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.state = replay(w.web, m.journal.entries, w.k.now)
	p.out = w.cfg.parts.outbox(p, p.state.outbox())
	machine := w.cfg.parts.machine(p, quorum.Config{Self: p.node, Instance: p.instance, Joined: p.state.joined,
		Received: slices.Clone(p.state.received), Forgotten: slices.Clone(p.state.sentTransfers),
		Place: w.placer(p), Slot: w.cfg.Slot, Partial: p.state.unfinished(),
		Parse: w.memo.parse, Layout: layout, Timing: w.cfg.Timing, Seed: w.k.rng.Uint64()})
	p.driver = driver.New(driver.Config{Self: p.node, Member: machine, Strategy: p.strategy, Timing: w.cfg.Timing,
		Runtime: virtualRuntime{p}, Engine: w.cfg.parts.engine(p, engine{p}), Failed: engine{p}, Record: record{p},
		Log: slog.New(slog.DiscardHandler), Seed: p.instance})
	return p
}

// heartbeat checks for the end of the crawl and reports the load, twice per lease heartbeat.
func (p *process) heartbeat() {
	p.after(p.w.cfg.Timing.Beat/2, func() {
		p.driver.DetectEnd()
		if p.strategy != nil {
			virtualRuntime{p}.Call(p.ctx, func() { p.driver.AddStrategyEvent(p.load()) })
		}
		p.heartbeat()
	})
}

// start starts the driver once the durable entries are shipped: after that the log records all received transfers.
func (p *process) start() {
	if j := p.journal; j.shipped < j.durable && !j.log.closed {
		p.after(20*time.Millisecond, p.start)
		return
	}
	p.driver.Start(p.ctx)
}

// identify gives a machine a new identity if its disk has none.
func (w *world) identify(m *machine) {
	if m.journal == nil {
		m.identities++
		m.node = strategy.Node(fmt.Sprintf("n%d~%d", m.index, m.identities))
		m.journal = newJournal(w, m.node)
		w.machineOf[m.node] = m.index
	}
}

// end stops a process at once. A random part of the entries that were not durable survives.
func (p *process) end() {
	p.close()
	p.m.proc = nil
	if p.watcher != nil {
		p.w.reg.unwatch(p.watcher)
	}
	for _, v := range p.visits {
		p.w.abandon(v)
	}
	j := p.journal
	p.w.truncateJournal(j, j.durable+p.w.k.rng.IntN(len(j.entries)-j.durable+1))
}

func (p *process) addEvent(e member.Event) {
	virtualRuntime{p}.Call(p.ctx, func() { p.driver.AddEvent(e) })
}

// onLeft ends a process whose node has left. The last member keeps its entry in the table and its disk.
func (p *process) onLeft() {
	t, err := p.w.table()
	last := err == nil && slices.ContainsFunc(t.Members, func(m strategy.Member) bool { return m.Node == p.node })
	p.w.logEvent("%s has left, last member: %v", p.node, last)
	p.m.shouldRun, p.m.departed = last, !last
	p.terminate(!last)
}

// terminate ends the process after its member has ended. With forget the machine restarts as a new node.
func (p *process) terminate(forget bool) {
	m := p.m
	p.end()
	if forget {
		m.journal = nil
	}
	if m.shouldRun {
		p.w.k.after(p.w.k.uniform(time.Second, 5*time.Second), func() { p.w.begin(m) })
	}
}

// untilClock returns how long it takes until the process's clock shows a time.
func (p *process) untilClock(at time.Time) time.Duration {
	return max(0, time.Duration(float64(at.Sub(p.now()))/(1+p.m.drift))+time.Microsecond)
}

// publish replaces the view that workers use.
func (p *process) publish(v member.View) {
	if v.Epoch() != p.view.Epoch() {
		p.w.logEvent("%s is at epoch %d", p.node, v.Epoch())
	}
	p.view = p.w.cfg.parts.router(p, v)
	p.cancelAtExpiry()
	p.wakeWaiters()
}
