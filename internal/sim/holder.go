package sim

import (
	"time"

	"kumo/internal/member"
	"kumo/internal/strategy"
)

// hold carries out what a member wants of the one who holds the node's part of the crawl.
func (p *process) hold(a member.Action) {
	switch a := a.(type) {
	case member.Enter:
		p.enter(&entry{kind: entryEnter})
		p.journal.synced = append(p.journal.synced, func() { p.tell(member.Entered{}) })
	case member.Drain:
		p.drain = a
		p.drained()
	case member.Flush:
		p.flush = a
		p.flushed()
	case member.Read:
		p.read(a)
	case member.Take:
		p.take(a)
	case member.Drop:
		p.w.tell("%s drops what came of %v", p.node, a.Transfer)
		p.enter(&entry{kind: entryDrop, transfer: a.Transfer})
		p.whenShipped(func() { p.tell(member.Dropped(a)) })
	case member.Forget:
		p.forget(a)
	case member.Fold:
		p.fold(a.Node)
	case member.Unfold:
		delete(p.estates, a.Node)
		delete(p.exports, a.Node)
	case member.Release:
		p.release(a)
	case member.Settled:
		p.enter(&entry{kind: entrySettled, epoch: a.Epoch})
	default:
		p.w.violate("%s wants %T done, which is unknown here", p.node, a)
	}
}

// drained answers Drain once no visit is under way to a host of others and all is shipped.
func (p *process) drained() {
	epoch := p.drain.Epoch
	if epoch == 0 {
		return
	}
	for _, v := range p.visits {
		if host := v.site().name; p.drain.Of == nil && !p.view.Ours(host) || p.drain.Of != nil && p.drain.Of(host) {
			return
		}
	}
	p.drain.Epoch = 0
	p.drains++
	id := p.drains
	p.whenShipped(func() {
		if id == p.drains {
			p.tell(member.Drained{Epoch: epoch})
		}
	})
}

// flushed answers Flush once nothing is left in the outbox.
func (p *process) flushed() {
	if epoch := p.flush.Epoch; epoch != 0 && p.out.Len() == 0 {
		p.flush.Epoch = 0
		p.w.k.within(p, 0, func() { p.tell(member.Flushed{Epoch: epoch}) })
	}
}

// An export is one reading of what is held for others.
type export struct {
	epoch, attempt uint64
	chunks         []chunk
	at             moment // when the last chunk asked for is read
}

type chunk struct {
	to   strategy.Node
	data []byte
}

// holds is what the node holds under a name: its own, or an estate's.
func (p *process) holds(n strategy.Node) *holding {
	if n == p.node {
		return p.state
	}
	if e := p.estates[n]; e != nil {
		return e.state
	}
	return nil
}

func (p *process) read(a member.Read) {
	s := p.holds(a.From)
	if s == nil {
		p.w.violate("%s reads of %s, whose estate it has not folded", p.node, a.From)
		return
	}
	x := p.exports[a.From]
	if x == nil || x.epoch != a.Epoch || x.attempt != a.Attempt {
		x = &export{epoch: a.Epoch, attempt: a.Attempt, chunks: p.export(s, a.Owner)}
		p.exports[a.From] = x
	}
	c := member.Chunk{From: a.From, Epoch: a.Epoch, Attempt: a.Attempt}
	if len(x.chunks) > 0 {
		c.To, c.Data = x.chunks[0].to, x.chunks[0].data
		x.chunks = x.chunks[1:]
	}
	x.at = max(x.at, p.w.k.now+p.w.k.about(10*time.Millisecond))
	p.w.k.within(p, x.at-p.w.k.now, func() { p.tell(c) })
}

// export makes the chunks of all hosts that have another owner: first the hosts, then what is known of them.
func (p *process) export(s *holding, owner func(string) strategy.Node) []chunk {
	most := p.w.cfg.Chunk
	var hosts, known []chunk
	last := map[strategy.Node]int{} // chunk of each owner, and one more
	items := map[int]int{}          // in each chunk
	for _, n := range s.order() {
		to := owner(s.web.hosts[n].name)
		if to == "" {
			continue
		}
		h := s.hosts[n]
		w := item{whole: true, host: n, owes: max(0, h.due-p.w.k.now), pages: h.waiting}
		k := item{host: n, pages: s.seen[n]}
		if last[to] == 0 || items[last[to]] == most {
			hosts, known = append(hosts, chunk{to: to}), append(known, chunk{to: to})
			last[to] = len(hosts)
		}
		i := last[to] - 1
		items[i+1]++
		hosts[i].data, known[i].data = w.append(hosts[i].data), k.append(known[i].data)
		p.w.tellOf(n, "%s sends %s to %s: %s", p.node, s.web.hosts[n].name, to, s.describe(n))
	}
	return append(hosts, known...)
}

func (p *process) take(a member.Take) {
	var came []int32
	if a.Last && p.mind != nil {
		came = p.state.known(a)
	}
	p.enter(&entry{kind: entryChunk, transfer: a.Transfer, seq: a.Seq, last: a.Last, data: a.Data})
	for _, it := range parseChunk(a.Data) {
		if h := p.state.hosts[it.host]; it.whole && h != nil {
			p.w.tellOf(it.host, "%s takes %s of %+v: %s", p.node, p.w.web.hosts[it.host].name, a.Transfer,
				p.state.describe(it.host))
			p.arm(h)
		}
	}
	p.whenShipped(func() {
		if len(came) > 0 {
			p.mind.arrived(came)
		}
		p.tell(member.Taken{Transfer: a.Transfer, Seq: a.Seq})
	})
}

func (p *process) forget(a member.Forget) {
	s := p.holds(a.From)
	answer := func() { p.tell(member.Forgotten{From: a.From, Epoch: a.Epoch}) }
	if s == nil {
		p.w.violate("%s forgets what %s held, whose estate it has not folded", p.node, a.From)
		return
	}
	var gone []int32
	for _, n := range s.order() {
		if a.Gone != nil && a.Gone(p.w.web.hosts[n].name) {
			gone = append(gone, n)
			p.w.tellOf(n, "%s forgets %s, which %s held", p.node, p.w.web.hosts[n].name, a.From)
		}
	}
	e := &entry{kind: entryForget, hosts: gone, whole: a.Whole}
	if a.From != p.node {
		s.apply(e, p.w.k.now)
		p.w.k.within(p, p.w.k.about(5*time.Millisecond), answer)
		return
	}
	p.enter(e)
	p.whenShipped(answer)
}

// An estate is what a dead node held, as far as it is read; state is nil until then.
type estate struct{ state *holding }

// fold closes a dead node's log and reads it, however long the registry is away.
func (p *process) fold(n strategy.Node) {
	est := &estate{}
	p.estates[n] = est
	log := p.w.logs[n]
	if log == nil {
		p.w.violate("%s folds %s, which has never been", p.node, n)
		return
	}
	var try func()
	try = func() {
		p.w.reg.ask(p, 100, func() { p.w.close(log) }, func(ok bool) {
			if p.estates[n] != est {
				return
			}
			if !ok {
				p.w.k.within(p, p.w.k.about(500*time.Millisecond), try)
				return
			}
			p.w.k.within(p, p.w.k.between(50*time.Millisecond, time.Second), func() { p.folded(n, est, log) })
		})
	}
	try()
}

func (p *process) folded(n strategy.Node, est *estate, log *shipped) {
	if p.estates[n] != est {
		return
	}
	s := replay(p.w.web, log.journal.entries[:log.n], p.w.k.now)
	for _, t := range s.unfinished() {
		s.drop(t)
	}
	est.state = s
	p.w.tell("%s has folded the estate of %s: %d hosts", p.node, n, len(s.hosts))
	p.tell(member.Folded{Node: n, Arrived: s.arrived, Forgot: s.forgot})
}

// release takes over the outbox of an estate.
func (p *process) release(a member.Release) {
	e := &entry{kind: entryRelease}
	if est := p.estates[a.Node]; est != nil && est.state != nil {
		for _, o := range est.state.outbox() {
			e.out = append(e.out, p.put(o.url))
		}
	}
	p.estates[a.Node] = &estate{state: newHolding(p.w.web)}
	delete(p.exports, a.Node)
	p.enter(e)
	p.pump()
	p.whenShipped(func() { p.tell(member.Released(a)) })
}
