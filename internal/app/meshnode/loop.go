package meshnode

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/member/peer"
	"kumo/internal/cluster/strategy"
)

// run does f beside the loop; its error ends the node.
func (n *Node) run(what string, f func(context.Context) error) {
	n.tasks.Go(func() {
		if err := f(n.ctx); err != nil && n.ctx.Err() == nil {
			n.stop(fmt.Errorf("%s: %w", what, err))
		}
	})
}

// tell tells the peer something, after all it has been told.
func (n *Node) tell(e ...peer.Event) { tellAll(n, e) }

func tellAll[E any](n *Node, all []E) {
	n.mu.Lock()
	for _, e := range all {
		n.events = append(n.events, e)
	}
	n.mu.Unlock()
	word(n.came)
}

// maxEvents is how many events may wait while messages are taken in.
const maxEvents = 1 << 14

// full reports whether more has come than the loop, or the disk, gets done.
func (n *Node) full() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.events) > maxEvents || n.store.full()
}

// post has f done by the loop.
func (n *Node) post(f func()) {
	n.mu.Lock()
	n.calls = append(n.calls, f)
	n.mu.Unlock()
	word(n.came)
}

func word(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (n *Node) loop() error {
	pump, look := time.NewTicker(pumpEvery), time.NewTicker(lookEvery)
	load := time.NewTicker(cmp.Or(n.cfg.Mesh.Balance.Interval, mesh.DefaultInterval))
	keep := time.NewTicker(keepEvery)
	defer keep.Stop()
	defer pump.Stop()
	defer look.Stop()
	defer load.Stop()
	word(n.came)
	for {
		select {
		case <-n.ctx.Done():
			return context.Cause(n.ctx)
		case <-n.came:
			n.stepAll()
		case <-n.wake.C:
			n.tell(peer.Tick{})
		case <-load.C:
			if n.cfg.Load != nil && n.engine() != nil {
				n.tell(n.cfg.Load())
			}
		case <-keep.C:
			n.keepCounts()
		case <-look.C:
			n.follow.dirty = true
			n.note(time.Now())
			if e := n.engine(); e != nil {
				e.Share(n.peer.Overlay().Size())
			}
		case now := <-pump.C:
			n.pump()
			n.follow.tick(now)
			n.alone.Store(n.peer.Overlay().Len() == 0)
		case <-n.kick:
			n.pump()
		}
		if n.follow.dirty {
			n.follow.look()
		}
	}
}

// keepCounts has it written how many pages nodes have fetched, as far as it is known here.
func (n *Node) keepCounts() {
	counts := n.peer.Machine().Counts()
	if len(counts) == 0 {
		return
	}
	if err := n.store.putCounts(counts); err != nil {
		n.stop(err)
	}
}

// stepAll tells the peer what is new.
func (n *Node) stepAll() {
	n.mu.Lock()
	events, calls := n.events, n.calls
	n.events, n.calls = nil, nil
	n.mu.Unlock()
	for _, f := range calls {
		f()
	}
	n.carryOut(n.peer.Step(n.clock.at(time.Now()), events, nil))
}

// step tells the peer something now, and has done what follows. It is called by the loop.
func (n *Node) step(e peer.Event) {
	n.carryOut(n.peer.Step(n.clock.at(time.Now()), []peer.Event{e}, nil))
}

// until is how long it takes until a time of the peer's.
func (n *Node) until(t time.Time) time.Duration { return time.Until(n.clock.back(t, time.Now())) }

// publish makes a view the one that workers ask.
func (n *Node) publish(v *mesh.View) { n.cfg.Router.publish(v, n.clock.back(v.Until(), time.Now())) }

// carryOut has done what the peer wants.
func (n *Node) carryOut(actions []peer.Action) {
	var release []string
	for _, a := range actions {
		switch a := a.(type) {
		case peer.Send:
			n.cfg.Learn(a.To)
			n.send(strategy.Node(a.To.Node), kindPeer, a.Data)
		case peer.Wake:
			n.wake.Reset(n.until(a.At))
		case mesh.Record, mesh.Read, mesh.Sweep, mesh.Drop:
			n.memory.do(a.(mesh.Action))
		case mesh.Take:
			n.take(a)
		case mesh.Release:
			release = append(release, a.Host)
		case mesh.Answer:
			n.answer(a)
		case mesh.Publish:
			n.publish(a.View)
		case mesh.Routed:
			if e := n.engine(); e != nil {
				e.Wake(a.Hosts)
				word(n.kick)
			}
		case mesh.Spare:
			n.run("find hosts to spare", func(ctx context.Context) error { n.spare(ctx, a); return nil })
		case mesh.Changed:
			n.follow.heard(a.Record)
		case mesh.Added:
			n.follow.added(a.Data)
		case mesh.Agreed:
			n.follow.agreed()
		case mesh.Ended:
			n.follow.ended(a)
			if n.cfg.Ended != nil {
				n.cfg.Ended(a)
			}
		case mesh.Gathered:
			if f := n.gathers[a.Tag]; f != nil {
				delete(n.gathers, a.Tag)
				f(a.Tally)
			}
		case mesh.Located:
			if f := n.locates[a.Tag]; f != nil {
				delete(n.locates, a.Tag)
				f(a)
			}
		case mesh.ReadRisk, mesh.WriteRisk, mesh.DropRisk, mesh.Safe, mesh.Lost:
			n.risk(a.(mesh.Action))
		case mesh.Left:
			n.left = true
		default:
			n.stop(fmt.Errorf("a node is to do %T, and cannot", a))
		}
	}
	if len(release) > 0 {
		n.run("give hosts up", func(ctx context.Context) error { return n.release(ctx, release) })
	}
}

// release gives hosts up. What is Finished of them is told before.
func (n *Node) release(ctx context.Context, hosts []string) error {
	released := func(host string, asked, wait time.Duration) {
		n.tell(mesh.Released{Host: host, Timing: mesh.Timing{Asked: asked, Wait: wait}})
	}
	if e := n.engine(); e != nil {
		return e.ReleaseHosts(ctx, hosts, released)
	}
	for _, host := range hosts {
		released(host, 0, 0)
	}
	return nil
}

// mostSpared is how many hosts are looked at for those to spare.
const mostSpared = 256

// spare tells which hosts have the longest queues. Where they cannot be read, none can be spared.
func (n *Node) spare(ctx context.Context, a mesh.Spare) {
	var queues []strategy.Queue
	if e := n.engine(); e != nil {
		var err error
		if queues, err = e.Queues(ctx, mostSpared); err != nil {
			n.log.Debug("no host is spared", "err", err)
		}
	}
	s := mesh.Spared{To: a.To}
	for _, q := range queues {
		if left := a.URLs - int64(q.Waiting); left >= 0 {
			s.Hosts = append(s.Hosts, q.Host)
			a.URLs = left
		}
	}
	n.tell(s)
}
