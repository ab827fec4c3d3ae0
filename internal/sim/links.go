package sim

import (
	"encoding/binary"
	"time"

	"kumo/internal/member"
	"kumo/internal/strategy"
)

// An outbox holds links for other nodes: a member.Outbox.
type outbox interface {
	Put(host, data string) uint64
	Restore(number uint64, host, data string)
	Len() int
	Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch
	Answered(from strategy.Node, batch uint64, refused []int, now time.Time) []member.Range
}

var _ outbox = (*member.Outbox)(nil)

// newOutbox is an outbox with what an earlier process has put and nobody is known to have.
func newOutbox(p *process, old []sent) outbox {
	o := member.NewOutbox(member.OutboxConfig{Links: 20, First: p.instance << 24})
	for _, s := range old {
		o.Restore(s.number, p.w.web.hosts[s.url.host()].name, encode(s.url))
	}
	return o
}

func encode(u url) string { return string(binary.BigEndian.AppendUint32(nil, uint32(u))) }

// decode reads the links of a batch.
func decode(batch []byte) []url {
	var links []url
	for b := batch[1:]; len(b) > 0; {
		n, size := binary.Uvarint(b)
		links = append(links, url(binary.BigEndian.Uint32(b[size:])))
		b = b[size+int(n):]
	}
	return links
}

// remembered is how many links a process keeps in mind that went into the outbox, so as not to put them there again.
const remembered = 512

// route divides links in those of own hosts and those for the outbox.
func (p *process) route(e *entry, links []url) {
	for _, u := range links {
		switch {
		case p.view.Ours(p.w.web.hosts[u.host()].name):
			if p.state.seen[u.host()]&u.bit() == 0 {
				e.links = append(e.links, u)
			}
		case !p.recent[u]:
			if len(p.recent) >= remembered {
				clear(p.recent)
			}
			p.recent[u] = true
			e.out = append(e.out, p.put(u))
		}
	}
	if len(e.out) > 0 {
		p.pump()
	}
}

func (p *process) put(u url) sent {
	p.w.tellOf(u.host(), "%s has a link to %s for its owner", p.node, p.w.web.name(u))
	return sent{p.out.Put(p.w.web.hosts[u.host()].name, encode(u)), u}
}

// pump sends what is in the outbox, and looks again as long as there is something.
func (p *process) pump() {
	if p.pumping || p.out.Len() == 0 {
		return
	}
	p.pumping = true
	p.w.k.within(p, 200*time.Millisecond, func() {
		p.pumping = false
		for _, b := range p.out.Batches(p.now(), p.owner) {
			p.deliver(b)
		}
		p.pump()
	})
}

func (p *process) owner(host string) (strategy.Node, bool) {
	if p.flush.Epoch != 0 { // it leaves: whoever owns the hosts, another node sees to it
		t := p.machine.Table()
		if len(t.Members) == 0 {
			return "", false
		}
		return t.Members[p.m.index%len(t.Members)].Node, true
	}
	n, state := p.view.Owner(host)
	if state == strategy.Unknown && p.mind != nil {
		p.mind.want(host)
	}
	return n, state != strategy.Unknown
}

// deliver carries a batch to its node and the answer back.
func (p *process) deliver(b member.Batch) {
	to, ok := p.w.place[b.To]
	if !ok {
		return
	}
	leaves := p.flush.Epoch != 0
	p.w.net.send(p.m.index, to, len(b.Data), func() {
		q := p.w.machines[to].proc
		if q == nil || q.node != b.To || leaves && q.flush.Epoch != 0 {
			return
		}
		p.w.k.within(q, 0, func() {
			q.takeLinks(decode(b.Data), leaves, func(refused []int) {
				p.w.net.send(to, p.m.index, 20, func() {
					p.w.k.within(p, 0, func() { p.taken(b, refused) })
				})
			})
		})
	})
}

// takeLinks takes links in from another node; answer is called with those refused when the others are durable and
// shipped. With all, those of others' hosts are taken in, too, into the outbox.
func (p *process) takeLinks(links []url, all bool, answer func(refused []int)) {
	e := &entry{kind: entryLinks}
	var refused []int
	for i, u := range links {
		switch {
		case all && !p.view.Ours(p.w.web.hosts[u.host()].name):
			e.out = append(e.out, p.put(u))
		case !p.view.Ours(p.w.web.hosts[u.host()].name):
			refused = append(refused, i)
			if p.mind != nil { // others hold it for the owner: is it?
				p.mind.want(p.w.web.hosts[u.host()].name)
			}
			p.w.tellOf(u.host(), "%s refuses a link to %s", p.node, p.w.web.name(u))
		case p.state.seen[u.host()]&u.bit() == 0:
			e.links = append(e.links, u)
			p.w.tellOf(u.host(), "%s takes a link to %s in", p.node, p.w.web.name(u))
		}
	}
	if len(e.links)+len(e.out) > 0 {
		p.enter(e)
		p.offered(e.links)
		p.pump()
	}
	p.whenShipped(func() { answer(refused) })
}

// taken notes that a node has links of the outbox for good.
func (p *process) taken(b member.Batch, refused []int) {
	e := &entry{kind: entryGone}
	if p.mind != nil && len(refused) > 0 {
		links := decode(b.Data)
		for _, i := range refused {
			p.mind.want(p.w.web.hosts[links[i].host()].name)
		}
	}
	for _, r := range p.out.Answered(b.To, b.Number, refused, p.now()) {
		for n := r.First; n <= r.Last; n++ {
			e.gone = append(e.gone, n)
		}
	}
	if len(e.gone) > 0 {
		p.enter(e)
	}
	p.pump()
	p.flushed()
}

// seed gives the crawl a URL: to one node after the other, until one has it for good.
func (w *world) seed(u url) {
	had := false
	var try func()
	try = func() {
		if had {
			return
		}
		w.k.after(5*time.Second, try)
		running := w.processes()
		if len(running) == 0 {
			return
		}
		p := running[w.k.rng.IntN(len(running))]
		w.k.within(p, 0, func() {
			if p.flush.Epoch != 0 {
				return // it leaves
			}
			e := &entry{kind: entryLinks}
			p.route(e, []url{u})
			p.enter(e)
			p.offered(e.links)
			p.whenShipped(func() {
				had = true
				w.score.found([]url{u})
			})
		})
	}
	w.k.after(w.k.between(0, time.Second), try)
}
