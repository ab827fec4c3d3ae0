package sim

import (
	"fmt"
	"slices"
	"time"

	"kumo/internal/member"
	"kumo/internal/strategy"
)

// layout is what all nodes of a run agree on.
const layout = "sim"

// A machine is a place where processes of one node's name run, one after the other, and its disk.
type machine struct {
	index   int
	lives   int           // identities it has had
	node    strategy.Node // its present identity
	journal *journal      // on its disk
	proc    *process      // nil while none runs
	offset  time.Duration // of its clock
	drift   float64       // how much faster its clock runs than a right one
	wanted  bool          // it should run: it is begun again when it ends
	cutAt   moment        // since when the registry is out of its reach; forever if it is not
	gone    bool          // it left for good
}

// A process is one life of a node's program.
type process struct {
	w        *world
	m        *machine
	node     strategy.Node
	instance uint64
	ended    bool
	paused   bool
	held     []func() // what happens when it goes on
	stood    span     // it stood still, the last time
	slips    int      // requests that were due to that

	machine  Machine
	mind     *mind // nil if the strategy is a Placer
	inbox    []member.Event
	stepping bool
	actions  []member.Action
	wakes    uint64
	watcher  *watcher

	view     Router
	journal  *journal
	state    *holding
	drain    member.Drain // to be answered; of epoch 0 if there is none
	drains   int          // answered, or about to be
	flush    member.Flush // as well
	exports  map[strategy.Node]*export
	estates  map[strategy.Node]*estate
	out      outbox
	recent   map[url]bool // links that went into the outbox not long ago
	pumping  bool
	expiring bool // the end of the lease is waited for
	busy     int
	fetched  int      // since that was asked for
	queue    []*hold  // hosts whose time has come, while all workers are busy
	visits   []*visit // requests under way, or about to be
	links    []url    // room
}

// A span is a time from one moment to another.
type span struct{ from, to moment }

// now is what the process's clock shows.
func (p *process) now() time.Time { return p.m.clock(p.w.k.now) }

func (m *machine) clock(t moment) time.Time {
	return began.Add(m.offset + t + time.Duration(float64(t)*m.drift))
}

// begin starts a process on a machine, with what its disk has.
func (w *world) begin(m *machine) {
	if m.proc != nil || m.gone {
		return
	}
	w.identify(m)
	w.instances++
	p := &process{w: w, m: m, node: m.node, instance: w.instances, journal: m.journal,
		exports: map[strategy.Node]*export{},
		estates: map[strategy.Node]*estate{}, recent: map[url]bool{}, view: nowhere{}}
	m.proc = p
	p.state = replay(w.web, m.journal.entries, w.k.now)
	p.out = w.cfg.parts.outbox(p, p.state.outbox())
	w.tell("%s begins (process %d)", p.node, p.instance)
	p.machine = w.cfg.parts.machine(p, member.Config{Self: p.node, Instance: p.instance, Joined: p.state.joined,
		Arrived: slices.Clone(p.state.arrived), Forgot: slices.Clone(p.state.forgot),
		Place: w.placer(p), Slot: w.cfg.Slot, Partial: p.state.unfinished(),
		Parse: w.parse, Layout: layout, Timing: w.cfg.Timing, Seed: w.k.rng.Uint64()})
	p.ship()
	p.start()
	for _, h := range p.state.order() {
		p.arm(p.state.hosts[h])
	}
	p.pump()
}

// start begins what is the member's when all that is on the disk is shipped: what came whole is what the log says.
func (p *process) start() {
	if j := p.journal; j.shipped < j.durable && !j.log.closed {
		p.w.k.within(p, 20*time.Millisecond, p.start)
		return
	}
	p.do(p.machine.Start(nil))
}

// identify gives a machine an identity, unless its disk has one.
func (w *world) identify(m *machine) {
	if m.journal == nil {
		m.lives++
		m.node = strategy.Node(fmt.Sprintf("n%d~%d", m.index, m.lives))
		m.journal = newJournal(w, m.node)
		w.place[m.node] = m.index
	}
}

// end stops a process at once. What of its journal was not durable yet is there in part.
func (p *process) end() {
	p.ended = true
	p.m.proc = nil
	p.held = nil
	if p.watcher != nil {
		p.w.reg.unwatch(p.watcher)
	}
	for _, v := range p.visits {
		p.w.abandon(v)
	}
	j := p.journal
	p.w.cut(j, j.durable+p.w.k.rng.IntN(len(j.entries)-j.durable+1))
}

// pause makes a process stand still, and resume lets it do at once what it has missed.
func (p *process) pause() {
	p.paused = true
	p.stood, p.slips = span{p.w.k.now, forever}, 0
}

func (p *process) resume() {
	p.paused = false
	p.stood.to = p.w.k.now
	held := p.held
	p.held = nil
	for _, f := range held {
		p.w.k.within(p, 0, f)
	}
}

// slept reports whether the process has stood still between two moments, as far as the last time goes.
func (p *process) slept(from, to moment) bool {
	return p.stood.to > 0 && p.stood.to >= from && p.stood.from <= to
}

// tell gives the member an event. All events of one moment are one step.
func (p *process) tell(e member.Event) {
	p.inbox = append(p.inbox, e)
	if !p.stepping {
		p.stepping = true
		p.w.k.within(p, 0, p.step)
	}
}

func (p *process) step() {
	p.stepping = false
	events := p.inbox
	p.inbox = nil
	out := p.machine.Step(p.now(), events, p.actions[:0])
	p.do(out)
	p.actions = out[:0]
	if p.mind != nil && !p.ended {
		if e, news := p.machine.News(); news {
			p.mind.tell(e)
		}
	}
}

// do carries out what a member wants done.
func (p *process) do(actions []member.Action) {
	for _, a := range actions {
		if p.ended {
			return
		}
		p.carry(a)
	}
}

func (p *process) carry(a member.Action) {
	switch a := a.(type) {
	case member.Watch:
		p.w.reg.watch(p, a)
	case member.Write:
		p.w.reg.put(p, a)
	case member.Send:
		p.send(a)
	case member.Wake:
		p.wake(a.At)
	case member.Publish:
		p.publish(a.View)
	case member.Whole:
		p.mind.tell(strategy.Whole(a))
	case member.Lost:
		p.w.tell("%s is lost: %s", p.node, a.Why)
		p.over(true)
	case member.Left:
		p.left()
	case member.Failed:
		p.w.violate("%s failed: %v", p.node, a.Err)
		p.over(false)
	default:
		p.hold(a)
	}
}

// left ends a process whose node has left; one that was the last has its place still, and what the crawl knows on its
// disk.
func (p *process) left() {
	t, err := p.w.table()
	last := err == nil && slices.ContainsFunc(t.Members, func(m strategy.Member) bool { return m.Node == p.node })
	p.w.tell("%s has left, as the last: %v", p.node, last)
	p.m.wanted, p.m.gone = last, !last
	p.over(!last)
}

// over ends the process because its member has; with forget the machine begins anew as another node.
func (p *process) over(forget bool) {
	m := p.m
	p.end()
	if forget {
		m.journal = nil
	}
	if m.wanted {
		p.w.k.after(p.w.k.between(time.Second, 5*time.Second), func() { p.w.begin(m) })
	}
}

// wake asks for a Tick when the process's clock shows a time.
func (p *process) wake(at time.Time) {
	p.wakes++
	id := p.wakes
	p.w.k.within(p, p.until(at), func() {
		if id == p.wakes {
			p.tell(member.Tick{})
		}
	})
}

// until is how long it takes until the process's clock shows a time.
func (p *process) until(at time.Time) time.Duration {
	return max(0, time.Duration(float64(at.Sub(p.now()))/(1+p.m.drift))+time.Microsecond)
}

// send carries a member's message to where the node is now.
func (p *process) send(a member.Send) {
	to, ok := p.w.place[a.To]
	if !ok {
		return
	}
	p.w.net.send(p.m.index, to, len(a.Data), func() {
		q := p.w.machines[to].proc
		if q == nil || q.node != a.To {
			return
		}
		p.w.k.within(q, 0, func() { q.tell(member.Message{From: p.node, Data: a.Data}) })
	})
}

// publish makes a view the one that workers ask.
func (p *process) publish(v *member.View) {
	if v.Epoch() != p.view.Epoch() {
		p.w.tell("%s knows of epoch %d", p.node, v.Epoch())
	}
	p.view = p.w.cfg.parts.router(p, v)
	p.expire()
	p.drained()
}
