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

// layout is what all nodes of a run agree on.
const layout = "sim"

// A machine is a place where processes of one node's name run, one after the other, and its disk.
type machine struct {
	index      int
	identities int           // identities it has had
	node       strategy.Node // its present identity
	journal    *journal      // on its disk
	proc       *process      // nil while none runs
	offset     time.Duration // of its clock
	drift      float64       // how much faster its clock runs than a right one
	shouldRun  bool          // it should run: it is begun again when it ends
	cutSince   moment        // since when the registry is out of its reach; forever if it is not
	departed   bool          // it left for good

	slowness  float64 // times as long as the fastest machine's its requests take
	throttled float64 // and times as long as that now

	fetched     int           // pages
	busyTime    time.Duration // that workers took for them, all together
	first, last moment        // when the first of them was begun, and the last ended
}

// A process is one life of a node's program.
type process struct {
	w        *world
	m        *machine
	node     strategy.Node
	instance uint64
	slips    int // requests that were due to its having stood still, the last time
	tasks

	driver   *driver.Driver
	strategy strategy.Strategy // nil if it is a Placer
	stepping bool              // a step of the driver's is about to be
	wakes    uint64
	watcher  *watcher

	view            member.View
	journal         *journal
	state           *nodeState
	received        int64 // chunks, and links of others
	seeds           int64 // that were given to it
	unshippedSeeds  int   // of these, not shipped yet
	expiryScheduled bool  // the end of the lease is waited for
	workers
	linkExchange
}

func (p *process) now() time.Time { return p.m.clock(p.w.k.now) }

func (m *machine) clock(t moment) time.Time {
	return began.Add(m.offset + t + time.Duration(float64(t)*m.drift))
}

// sendInitial starts a process on a machine, with what its disk has.
func (w *world) begin(m *machine) {
	if m.proc != nil || m.departed {
		return
	}
	w.identify(m)
	p := w.newProcess(m)
	m.proc = p
	w.logEvent("%s begins (process %d)", p.node, p.instance)
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

// heartbeat looks for the crawl's end, and says how much there is to do, as often as a node's lease tells others.
func (p *process) heartbeat() {
	p.after(p.w.cfg.Timing.Beat/2, func() {
		p.driver.DetectEnd()
		if p.strategy != nil {
			virtualRuntime{p}.Call(p.ctx, func() { p.driver.AddStrategyEvent(p.load()) })
		}
		p.heartbeat()
	})
}

// start begins what is the member's when all that is on the disk is shipped: what came whole is what the log says.
func (p *process) start() {
	if j := p.journal; j.shipped < j.durable && !j.log.closed {
		p.after(20*time.Millisecond, p.start)
		return
	}
	p.driver.Start(p.ctx)
}

// identify gives a machine an identity, unless its disk has one.
func (w *world) identify(m *machine) {
	if m.journal == nil {
		m.identities++
		m.node = strategy.Node(fmt.Sprintf("n%d~%d", m.index, m.identities))
		m.journal = newJournal(w, m.node)
		w.machineOf[m.node] = m.index
	}
}

// end stops a process at once. What of its journal was not durable yet is there in part.
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

// left ends a process whose node has left; one that was the last has its place still, and what the crawl knows on its
// disk.
func (p *process) onLeft() {
	t, err := p.w.table()
	last := err == nil && slices.ContainsFunc(t.Members, func(m strategy.Member) bool { return m.Node == p.node })
	p.w.logEvent("%s has left, as the last: %v", p.node, last)
	p.m.shouldRun, p.m.departed = last, !last
	p.terminate(!last)
}

// over ends the process because its member has; with forget the machine begins anew as another node.
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

// untilClock is how long it takes until the process's clock shows a time.
func (p *process) untilClock(at time.Time) time.Duration {
	return max(0, time.Duration(float64(at.Sub(p.now()))/(1+p.m.drift))+time.Microsecond)
}

// publish makes a view the one that workers ask.
func (p *process) publish(v member.View) {
	if v.Epoch() != p.view.Epoch() {
		p.w.logEvent("%s knows of epoch %d", p.node, v.Epoch())
	}
	p.view = p.w.cfg.parts.router(p, v)
	p.cancelAtExpiry()
	p.wakeWaiters()
}
