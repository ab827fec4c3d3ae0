package meshnode

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"kumo/internal/base/advice"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/desired"
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
	results *resultSaver

	peer    *peer.Peer
	clock   clock
	wake    *time.Timer
	kick    chan struct{} // triggers the pump
	alone   atomic.Bool   // no other node is known; safe for concurrent use
	leaving bool
	left    bool // the peer has left

	heartbeat wait.Heartbeat // safe for concurrent use
}

func (l *loop) run() error {
	pump, look := time.NewTicker(pumpEvery), time.NewTicker(checkInterval)
	load := time.NewTicker(l.cfg.Mesh.Balance.LoadInterval())
	if l.cfg.Mesh.Terms.Strategy == mesh.StrategyPaper { // the peer determines when
		load.Stop()
	}
	keep := time.NewTicker(countsInterval)
	defer keep.Stop()
	defer pump.Stop()
	defer look.Stop()
	defer load.Stop()
	wait.Wake(l.inbox.signal)
	defer l.heartbeat.Stop()
	for {
		l.heartbeat.Beat()
		select {
		case <-l.tasks.ctx.Done():
			return context.Cause(l.tasks.ctx)
		case <-l.inbox.signal:
			l.stepAll()
		case <-l.wake.C:
			l.inbox.send(peer.Tick{})
		case <-load.C:
			l.sendLoad()
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

func (l *loop) sendLoad() {
	if l.cfg.Load == nil || l.engine.get() == nil {
		return
	}
	if load, known := l.cfg.Load(); known {
		l.inbox.send(load)
	}
}

func (l *loop) saveCounts() {
	m := l.peer.Machine()
	if counts := m.Counts(); len(counts) > 0 {
		if err := l.store.putCounts(counts); err != nil {
			l.tasks.stop(err)
		}
	}
	if all := m.Results(); len(all) > 0 {
		if err := l.store.putResults(all); err != nil {
			l.tasks.stop(err)
		}
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
		case mesh.ReadCookies:
			l.readCookies(a)
		case mesh.AddCookies:
			l.tasks.run("add cookies", func(context.Context) error { l.addCookies(a); return nil })
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
		case mesh.Measure:
			l.sendLoad()
		case mesh.TermsAgreed:
			l.agreed(a.Terms)
		case mesh.TermsRefused:
			l.refuse(a.Err)
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
		case mesh.LimitReached:
			l.watcher.stopAtLimit(desired.WhyLimit, "pages", a.Pages)
		case mesh.Gathered:
			l.queries.gathered(a)
		case mesh.GatheredResults:
			l.queries.gatheredResults(a)
		case mesh.Results:
			l.saveResults(a)
		case mesh.Located:
			l.queries.located(a)
		case mesh.ReadRisk, mesh.WriteRisk, mesh.DropRisk, mesh.Safe, mesh.Lost:
			l.risks.do(a.(mesh.Action))
		case mesh.Left:
			l.left = true
			moved := l.peer.Machine().Moves()
			l.cfg.Log.Debug("the history has moved", "compared", moved.Compared, "whole", moved.Whole,
				"lists-kept", moved.Kept)
		default:
			l.tasks.stop(fmt.Errorf("unknown action %T", a))
		}
	}
	if len(release) > 0 {
		l.tasks.run("release hosts", func(ctx context.Context) error { return l.release(ctx, release) })
	}
}

// refuseTime is how long a refused node has to announce to others that it leaves.
const refuseTime = 300 * time.Millisecond

// refuse ends a node that cannot take part in the crawl. It announces that it leaves, so that others do not wait for
// it.
func (l *loop) refuse(err error) {
	l.step(mesh.Leave{})
	time.AfterFunc(refuseTime, func() { l.tasks.stop(advice.Usage("%w", err)) })
}

// agreed stores the terms of the crawl.
func (l *loop) agreed(t mesh.AgreedTerms) {
	if t.Strategy == mesh.StrategyPaper {
		l.cfg.Log.Info("the nodes of this crawl agree", "strategy", t.Strategy, "block-size", t.Block, "balance-every",
			t.Interval)
	}
	if err := l.store.putTerms(t); err != nil {
		l.tasks.stop(err)
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

// readCookies reads the cookies of a host that another node fetches next.
func (l *loop) readCookies(a mesh.ReadCookies) {
	read := mesh.CookiesRead{ID: a.ID}
	if e := l.engine.get(); e != nil {
		read.Data = e.HostCookies(a.Host, mesh.MaxCookies)
	}
	l.inbox.send(read)
}

// addCookies adds another node's cookies of a host that this node fetches next.
func (l *loop) addCookies(a mesh.AddCookies) {
	e := l.engine.get()
	if e != nil {
		if err := e.AddCookies(a.Host, a.Data); err != nil {
			l.cfg.Log.Debug("cannot add another node's cookies", "err", err)
		}
	}
	l.inbox.send(mesh.CookiesAdded{ID: a.ID, Postponed: e == nil})
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
	hosts, pending := make([]string, len(queues)), make([]int64, len(queues))
	for i, q := range queues {
		hosts[i], pending[i] = q.Host, int64(q.Pending)
	}
	l.inbox.send(a.Select(hosts, pending))
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
