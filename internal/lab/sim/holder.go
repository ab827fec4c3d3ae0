package sim

import (
	"context"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/strategy"
)

// An engine is what a process holds of the crawl, as its driver asks for it.
type engine struct{ *process }

// Idle reports whether nothing waits, is under way, or is bound for others.
func (e engine) Idle() bool { return e.pendingWork() == "" }

func (e engine) Received() int64 { return e.received }

// Drain waits until no visit is under way to some hosts of others, and all is shipped.
func (e engine) Drain(ctx context.Context, of func(string) bool) error {
	if of == nil {
		of = func(host string) bool { return !e.view.Ours(host) }
	}
	for e.isVisiting(of) {
		if !e.await(func(done func()) { e.visitWaiters = append(e.visitWaiters, done) }) || ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return e.waitShipped(ctx)
}

// An export is one reading of what is held for others.
type export struct {
	*process
	chunks []chunk
}

type chunk struct {
	to   strategy.Node
	data []byte
}

// Next gives the next chunk, when it is read.
func (x *export) Next() (strategy.Node, []byte, error) {
	if !x.sleep(x.ctx, x.w.k.exponential(2*time.Millisecond)) {
		return "", nil, x.ctx.Err()
	}
	if len(x.chunks) == 0 {
		return "", nil, nil
	}
	c := x.chunks[0]
	x.chunks = x.chunks[1:]
	return c.to, c.data, nil
}

func (x *export) Close() error { return nil }

func (e engine) Export(owner func(string) strategy.Node) (driver.Export, error) {
	e.w.recordExport(e.process, owner)
	return e.export(e.state, owner), nil
}

// export makes the chunks of all hosts that have another owner: first the hosts, then what is known of them.
func (p *process) export(s *nodeState, owner func(string) strategy.Node) *export {
	most := p.w.cfg.Chunk
	var hosts, known []chunk
	last := map[strategy.Node]int{} // chunk of each owner, and one more
	items := map[int]int{}          // in each chunk
	for _, n := range s.sortedHosts() {
		to := owner(s.web.hosts[n].name)
		if to == "" {
			continue
		}
		h := s.hosts[n]
		w := chunkItem{isQueue: true, host: n, wait: max(0, h.nextRequest-p.w.k.now), pages: h.waiting}
		k := chunkItem{host: n, pages: s.seen[n]}
		if last[to] == 0 || items[last[to]] == most {
			hosts, known = append(hosts, chunk{to: to}), append(known, chunk{to: to})
			last[to] = len(hosts)
		}
		i := last[to] - 1
		items[i+1]++
		hosts[i].data, known[i].data = w.append(hosts[i].data), k.append(known[i].data)
		p.w.logHost(n, "%s sends %s to %s: %s", p.node, s.web.hosts[n].name, to, s.describe(n))
	}
	return &export{p, append(hosts, known...)}
}

func (e engine) Import(_ context.Context, t member.Transfer, seq uint64, last bool,
	data []byte) (func(context.Context) error, error) {
	p := e.process
	p.received++
	var came []string
	if last {
		came = p.state.hostNames(t, data)
	}
	p.enter(&entry{kind: entryChunk, transfer: t, seq: seq, last: last, data: data})
	for _, it := range parseChunk(data) {
		if h := p.state.hosts[it.host]; it.isQueue && h != nil {
			p.w.logHost(it.host, "%s takes %s of %+v: %s", p.node, p.w.web.hosts[it.host].name, t, p.state.describe(it.host))
			p.scheduleHost(h)
		}
	}
	upTo := len(p.journal.entries)
	return func(ctx context.Context) error {
		p.await(func(done func()) { p.whenShippedTo(upTo, done) })
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(came) > 0 {
			p.driver.AddStrategyEvent(strategy.Held{Hosts: came})
		}
		return nil
	}, nil
}

func (e engine) Drop(ctx context.Context, t member.Transfer) error {
	e.w.logEvent("%s drops what came of %v", e.node, t)
	e.enter(&entry{kind: entryDrop, transfer: t})
	return e.waitShipped(ctx)
}

func (e engine) Forget(ctx context.Context, gone member.Moved, whole []member.Transfer) error {
	forgotten := &entry{kind: entryForget, sentTransfers: whole, hosts: e.state.departed(gone)}
	for _, n := range forgotten.hosts {
		forgotten.handedOver = append(forgotten.handedOver, e.w.checkForget(e.process, n))
		e.w.logHost(n, "%s forgets %s", e.node, e.w.web.hosts[n].name)
	}
	e.enter(forgotten)
	return e.waitShipped(ctx)
}

func (e engine) FinalizeEpoch(_ context.Context, epoch uint64) error {
	e.enter(&entry{kind: entryFinalized, epoch: epoch})
	return nil
}

// Recover closes a dead node's log and reads it.
func (e engine) Recover(ctx context.Context, dead strategy.Node) (driver.FailedState, error) {
	p, log := e.process, e.w.logs[dead]
	if !p.query(100, func() { p.w.closeLog(log) }) {
		return nil, errUnavailable
	}
	if !p.sleep(ctx, p.w.k.uniform(50*time.Millisecond, time.Second)) {
		return nil, ctx.Err()
	}
	s := replay(p.w.web, log.journal.entries[:log.length], p.w.k.now)
	for _, t := range s.unfinished() {
		s.drop(t)
	}
	p.w.logEvent("%s has folded the estate of %s: %d hosts", p.node, dead, len(s.hosts))
	return &failedState{p, s}, nil
}

// DeleteLog leaves nothing of a log: who reads it later finds it empty.
func (e engine) DeleteLog(_ context.Context, dead strategy.Node) error {
	if !e.query(50, func() { e.w.logs[dead].length = 0 }) {
		return errUnavailable
	}
	return nil
}

// A failedState is what a dead node held.
type failedState struct {
	p *process
	*nodeState
}

func (f *failedState) Received() []member.Transfer  { return f.received }
func (f *failedState) Forgotten() []member.Transfer { return f.sentTransfers }
func (f *failedState) Close() error                 { return nil }

func (f *failedState) Forget(gone member.Moved) {
	f.apply(&entry{kind: entryForget, hosts: f.departed(gone)}, f.p.w.k.now)
}

func (f *failedState) Export(owner func(string) strategy.Node) (driver.Export, error) {
	return f.p.export(f.nodeState, owner), nil
}

func (f *failedState) OutboxLinks(take func([]byte) error) error {
	box := newOutbox(f.p, f.outbox())
	for _, b := range box.Batches(f.p.now(), func(string) (strategy.Node, bool) { return f.p.node, true }) {
		if err := take(b.Data); err != nil {
			return err
		}
	}
	return nil
}
