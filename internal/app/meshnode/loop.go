package meshnode

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"kumo/internal/base/wait"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/member/peer"
	"kumo/internal/cluster/strategy"
)

// A loop passes events to the peer and starts the peer's actions. It never blocks. Unless noted, its fields and those
// of the recordWatcher, the queries and the reporter belong to Run's goroutine.
type loop struct {
	cfg     *Config
	inbox   *inbox
	tasks   *tasks
	engine  *engineRef
	msgs    *messages
	links   *linkExchange
	intake  *intake
	risks   *atRisk
	history *historyWorker
	store   *store
	watcher *recordWatcher
	queries *queries
	report  *reporter

	peer    *peer.Peer
	clock   clock
	wake    *time.Timer
	kick    chan struct{} // triggers the pump
	alone   atomic.Bool   // no other node is known; safe for concurrent use
	leaving bool
	left    bool // the peer has left
}

func (l *loop) run() error {
	pump, look := time.NewTicker(pumpEvery), time.NewTicker(checkInterval)
	load := time.NewTicker(cmp.Or(l.cfg.Mesh.Balance.Interval, mesh.DefaultInterval))
	keep := time.NewTicker(countsInterval)
	defer keep.Stop()
	defer pump.Stop()
	defer look.Stop()
	defer load.Stop()
	wait.Wake(l.inbox.signal)
	for {
		select {
		case <-l.tasks.ctx.Done():
			return context.Cause(l.tasks.ctx)
		case <-l.inbox.signal:
			l.stepAll()
		case <-l.wake.C:
			l.inbox.send(peer.Tick{})
		case <-load.C:
			if l.cfg.Load != nil && l.engine.get() != nil {
				l.inbox.send(l.cfg.Load())
			}
		case <-keep.C:
			l.saveCounts()
		case <-look.C:
			l.watcher.dirty = true
			l.report.recordEvents(time.Now())
			if e := l.engine.get(); e != nil {
				e.Share(l.peer.Overlay().Size())
			}
		case now := <-pump.C:
			l.pump()
			l.watcher.tick(now)
			l.alone.Store(l.peer.Overlay().Len() == 0)
		case <-l.kick:
			l.pump()
		}
		if l.watcher.dirty {
			l.watcher.update()
		}
	}
}

func (l *loop) saveCounts() {
	counts := l.peer.Machine().Counts()
	if len(counts) == 0 {
		return
	}
	if err := l.store.putCounts(counts); err != nil {
		l.tasks.stop(err)
	}
}

// stepAll runs the pending calls, and passes the pending events to the peer.
func (l *loop) stepAll() {
	events, calls := l.inbox.drain()
	for _, f := range calls {
		f()
	}
	l.execute(l.peer.Step(l.clock.at(time.Now()), events, nil))
}

// step passes an event to the peer at once, and starts the resulting actions.
func (l *loop) step(e peer.Event) {
	l.execute(l.peer.Step(l.clock.at(time.Now()), []peer.Event{e}, nil))
}

func (l *loop) until(t time.Time) time.Duration { return time.Until(l.clock.wallTime(t, time.Now())) }

func (l *loop) publish(v *mesh.View) {
	l.cfg.Router.publish(v, l.clock.wallTime(v.Until(), time.Now()))
}

func (l *loop) execute(actions []peer.Action) {
	var release []string
	for _, a := range actions {
		switch a := a.(type) {
		case peer.Send:
			l.cfg.Learn(a.To)
			l.msgs.send(strategy.Node(a.To.Node), kindPeer, a.Data)
		case peer.Wake:
			l.wake.Reset(l.until(a.At))
		case mesh.Record, mesh.Read, mesh.Sweep, mesh.Drop:
			l.history.enqueue(a.(mesh.Action))
		case mesh.Enqueue:
			l.intake.add(a)
		case mesh.Release:
			release = append(release, a.Host)
		case mesh.Answer:
			l.links.answer(a)
		case mesh.Publish:
			l.publish(a.View)
		case mesh.Routed:
			if e := l.engine.get(); e != nil {
				e.RetryDeferred(a.Hosts)
				wait.Wake(l.kick)
			}
		case mesh.Spare:
			l.tasks.run("find hosts to delegate", func(ctx context.Context) error { l.spare(ctx, a); return nil })
		case mesh.Changed:
			l.watcher.recordChanged(a.Record)
		case mesh.Added:
			l.watcher.added(a.Data)
		case mesh.Agreed:
			l.watcher.markSynced()
		case mesh.Ended:
			l.watcher.allIdle(a)
			if l.cfg.Ended != nil {
				l.cfg.Ended(a)
			}
		case mesh.Gathered:
			l.queries.gathered(a)
		case mesh.Located:
			l.queries.located(a)
		case mesh.ReadRisk, mesh.WriteRisk, mesh.DropRisk, mesh.Safe, mesh.Lost:
			l.risks.do(a.(mesh.Action))
		case mesh.Left:
			l.left = true
		default:
			l.tasks.stop(fmt.Errorf("unknown action %T", a))
		}
	}
	if len(release) > 0 {
		l.tasks.run("release hosts", func(ctx context.Context) error { return l.release(ctx, release) })
	}
}

// release releases hosts. Their Finished events come first.
func (l *loop) release(ctx context.Context, hosts []string) error {
	released := func(host string, asked, wait time.Duration) {
		l.inbox.send(mesh.Released{Host: host, Timing: mesh.Timing{Delay: asked, Wait: wait}})
	}
	if e := l.engine.get(); e != nil {
		return e.ReleaseHosts(ctx, hosts, released)
	}
	for _, host := range hosts {
		released(host, 0, 0)
	}
	return nil
}

// maxSpared is the number of hosts considered for delegation.
const maxSpared = 256

// spare reports hosts with long queues that another node may take; none if they cannot be read.
func (l *loop) spare(ctx context.Context, a mesh.Spare) {
	var queues []strategy.Queue
	if e := l.engine.get(); e != nil {
		var err error
		if queues, err = e.Queues(ctx, maxSpared); err != nil {
			l.cfg.Log.Debug("cannot find hosts to delegate", "err", err)
		}
	}
	s := mesh.Spared{To: a.To}
	for _, q := range queues {
		if left := a.URLs - int64(q.Pending); left >= 0 {
			s.Hosts = append(s.Hosts, q.Host)
			a.URLs = left
		}
	}
	l.inbox.send(s)
}

// pump offers links to the nodes that remember them, and stops a node that has left once its outbox is empty.
func (l *loop) pump() {
	if l.leaving && !l.left && l.hasNoPeers() {
		l.tasks.stop(ErrAlone)
	}
	e := l.engine.get()
	if e == nil {
		if l.left {
			l.tasks.stop(ErrLeft)
		}
		return
	}
	l.links.offer(e.Batches(time.Now(), l.peer.Machine().FirstBackup))
	if hosts, _ := e.Unrouted(); len(hosts) > 0 {
		l.inbox.send(mesh.Unrouted{Hosts: hosts})
	}
	if links, _ := e.Outbox(); l.left && links == 0 {
		l.tasks.stop(ErrLeft)
	}
}

// hasNoPeers reports whether no other node is known or expected back.
func (l *loop) hasNoPeers() bool {
	return l.peer.Overlay().Len() == 0 && l.until(l.peer.Machine().AwaitedUntil()) <= 0
}

// leave starts to transfer all hosts and records of this node to others.
func (l *loop) leave() {
	if l.leaving {
		return
	}
	l.leaving = true
	if l.hasNoPeers() {
		l.tasks.stop(ErrAlone)
	} else {
		l.step(mesh.Leave{})
	}
}
