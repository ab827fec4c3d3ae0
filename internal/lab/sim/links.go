package sim

import (
	"context"
	"encoding/binary"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/strategy"
)

// An outbox holds links for other nodes. It is a member.Outbox.
type outbox interface {
	Put(host, data string) uint64
	Restore(number uint64, host, data string)
	Len() int
	Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch
	Answered(from strategy.Node, batch uint64, refused []int, now time.Time) []member.Range
	Unrouted() (hosts []string, links []int)
	AddUnrouted(host string)
	RetryDeferred(hosts []string)
}

// newOutbox returns an outbox with the links that earlier processes put there and nobody has acknowledged.
func newOutbox(p *process, old []outboxLink) outbox {
	o := member.NewOutbox(member.OutboxConfig{Links: 20, First: p.instance << 24})
	for _, s := range old {
		o.Restore(s.number, p.w.web.hosts[s.url.host()].name, encode(s.url))
	}
	return o
}

func encode(u url) string { return string(binary.BigEndian.AppendUint32(nil, uint32(u))) }

func decode(batch []byte) []url {
	var links []url
	for b := batch[1:]; len(b) > 0; {
		n, size := binary.Uvarint(b)
		links = append(links, url(binary.BigEndian.Uint32(b[size:])))
		b = b[size+int(n):]
	}
	return links
}

// A linkExchange exchanges links with other nodes.
type linkExchange struct {
	out           outbox
	recent        map[url]bool // links recently put into the outbox
	pumping       bool
	receivedLinks int64 // new URLs from the outboxes of others
}

// maxRecent bounds the links that a process remembers to avoid putting them into the outbox again.
const maxRecent = 512

// routeLinks adds links to own hosts to the entry, and those to other hosts to the outbox.
func (p *process) routeLinks(e *entry, links []url) {
	for _, u := range links {
		switch {
		case p.view.Ours(p.w.web.hosts[u.host()].name):
			if p.state.seen[u.host()]&u.bit() == 0 {
				e.links = append(e.links, u)
			}
		case !p.recent[u]:
			if len(p.recent) >= maxRecent {
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

func (p *process) put(u url) outboxLink {
	p.w.logHost(u.host(), "%s has a link to %s for its owner", p.node, p.w.web.name(u))
	return outboxLink{p.out.Put(p.w.web.hosts[u.host()].name, encode(u)), u}
}

// pump sends the links of the outbox, and repeats until it is empty.
func (p *process) pump() {
	if p.pumping {
		return
	}
	p.pumping = true
	p.after(driver.PumpEvery, func() {
		p.pumping = false
		p.driver.Pump(p.ctx, p.owner)
		if p.out.Len() > 0 {
			p.pump()
		}
	})
}

func (p *process) owner(host string) (strategy.Node, bool) {
	n, state := p.view.Owner(host)
	return n, state != strategy.Unknown
}

func (e engine) Batches(now time.Time, owner func(string) (strategy.Node, bool)) []member.Batch {
	return e.out.Batches(now, owner)
}

func (e engine) Outbox() (links int, bytes int64) { return e.out.Len(), 0 }

func (e engine) Unrouted() (hosts []string, links []int) { return e.out.Unrouted() }

func (e engine) RetryDeferred(hosts []string) { e.out.RetryDeferred(hosts) }

func (e engine) TakeLinks(ctx context.Context, data []byte) (refused []int, err error) {
	return e.receiveLinks(ctx, decode(data), false)
}

func (e engine) AdoptLinks(ctx context.Context, data []byte) error {
	e.received++
	_, err := e.receiveLinks(ctx, decode(data), true)
	return err
}

// receiveLinks enqueues links from another node. Links to hosts of others are refused or, with all, put into the
// outbox. On return the rest is durable and shipped.
func (p *process) receiveLinks(ctx context.Context, links []url, all bool) (refused []int, err error) {
	e := &entry{kind: entryLinks}
	for i, u := range links {
		switch {
		case all && !p.view.Ours(p.w.web.hosts[u.host()].name):
			e.out = append(e.out, p.put(u))
		case !p.view.Ours(p.w.web.hosts[u.host()].name):
			refused = append(refused, i)
			p.out.AddUnrouted(p.w.web.hosts[u.host()].name) // the sender takes this node for the owner: check that
			p.w.logHost(u.host(), "%s refuses a link to %s", p.node, p.w.web.name(u))
		case p.state.seen[u.host()]&u.bit() == 0:
			e.links = append(e.links, u)
			p.w.logHost(u.host(), "%s accepts a link to %s", p.node, p.w.web.name(u))
		}
	}
	p.receivedLinks += int64(len(e.links))
	if len(e.links)+len(e.out) > 0 {
		p.enter(e)
		p.scheduleHosts(e.links)
	}
	p.pump()
	return refused, p.waitShipped(ctx)
}

// Answered removes links of the outbox that a node has durably received.
func (e engine) Answered(from strategy.Node, batch uint64, refused []int, now time.Time) {
	gone := &entry{kind: entryAcked}
	for _, r := range e.out.Answered(from, batch, refused, now) {
		for n := r.First; n <= r.Last; n++ {
			gone.acked = append(gone.acked, n)
		}
	}
	if len(gone.acked) > 0 {
		e.enter(gone)
	}
}

// addSeed adds a seed to the crawl, with one member after another until one has it durably.
func (w *world) addSeed(u url) {
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
		w.k.schedule(p, 0, func() {
			if !p.view.IsMember() || p.driver.Leaving() {
				return
			}
			e := &entry{kind: entryLinks}
			p.seeds++
			p.unshippedSeeds++
			p.routeLinks(e, []url{u})
			p.enter(e)
			p.scheduleHosts(e.links)
			p.whenShipped(func() {
				p.unshippedSeeds--
				if !had {
					had = true
					w.seeded++
				}
				w.checker.coverage.addLinks([]url{u}, w.k.now)
			})
		})
	}
	w.k.after(w.k.uniform(0, time.Second), try)
}
