package sim

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/strategy"
)

// linkSize is the size of a link's outbox data, about as in a real crawl.
const linkSize = 64

// A meshKey identifies a page in histories. It includes how often the page's record was lost.
type meshKey struct {
	url
	losses uint8
}

const keySize = 5

func (k meshKey) append(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(k.url)), k.losses)
}

func readKey(b []byte) meshKey { return meshKey{url(binary.BigEndian.Uint32(b)), b[4]} }

func linkData(k meshKey) string {
	var data [linkSize]byte
	k.append(data[:0])
	return string(data[:])
}

func hashOf(k meshKey) (h mesh.Hash) {
	k.append(h[:0])
	return h
}

func keyOf(h mesh.Hash) meshKey { return readKey(h[:]) }

// itemData stands for a link's data other than its hash.
var itemData = make([]byte, linkSize-len(mesh.Hash{}))

func (m meshHistory) record(h int32, a mesh.Record) mesh.Recorded {
	all := m[h]
	if all == nil {
		all = &meshRecord{}
		m[h] = all
	}
	r := mesh.Recorded{ID: a.ID, Before: make([]mesh.State, len(a.Links))}
	for i, k := range a.Links {
		d, bit := all.afterLosses(keyOf(k.Hash).losses), keyOf(k.Hash).bit()
		r.Before[i] = d.state(bit)
		if k.State > r.Before[i] {
			d.open, d.done = d.open&^bit, d.done&^bit
			if k.State == mesh.Done {
				d.done |= bit
			} else {
				d.open |= bit
			}
		}
	}
	for d := all; d != nil; d = d.afterLoss {
		r.Open += bits.OnesCount64(d.open)
	}
	return r
}

// afterLosses returns the part of a host's history for URLs whose records were lost so many times.
func (d *meshRecord) afterLosses(losses uint8) *meshRecord {
	for ; losses > 0; losses-- {
		if d.afterLoss == nil {
			d.afterLoss = &meshRecord{}
		}
		d = d.afterLoss
	}
	return d
}

func (d *meshRecord) state(bit uint64) mesh.State {
	switch {
	case d.done&bit != 0:
		return mesh.Done
	case d.open&bit != 0:
		return mesh.Dispatched
	}
	return mesh.Unknown
}

// read returns a part of a host's history, up to 20 URLs. By hash it returns none: that is only for later visits.
func (m meshHistory) read(h int32, a mesh.Read) mesh.Known {
	k := mesh.Known{ID: a.ID}
	if a.Hashes != nil {
		return k
	}
	for r, losses := m[h], uint8(0); r != nil; r, losses = r.afterLoss, losses+1 {
		set := r.open
		if a.All {
			set |= r.done
		}
		if a.From != "" && losses <= a.From[1] {
			if losses < a.From[1] {
				continue
			}
			set &^= 1<<(a.From[0]&63) - 1
		}
		for ; set != 0; set &= set - 1 {
			u := at(h, lowest(set))
			if len(k.Links) == 20 {
				k.Next = string([]byte{byte(u & 63), losses})
				return k
			}
			link := mesh.Link{Hash: hashOf(meshKey{u, losses}), State: r.state(u.bit())}
			if link.State == mesh.Dispatched {
				link.Item = itemData
			}
			k.Links = append(k.Links, link)
		}
	}
	return k
}

func (m meshHistory) sweep(w *web, a mesh.Sweep) (s mesh.Swept) {
	for _, h := range slices.Sorted(maps.Keys(m)) {
		name := w.hosts[h].name
		if a.From != "" && h < w.byName[a.From] || !a.In.Contains(xor.Of("backup", name)) {
			continue
		}
		if len(s.Hosts) == 50 {
			s.Next = name
			break
		}
		s.Hosts = append(s.Hosts, name)
	}
	return s
}

func (p *meshProcess) enqueue(a mesh.Enqueue) mesh.Enqueued {
	h := p.w.web.byName[a.Host]
	e := p.n.disk.engine[h]
	if e == nil {
		p.w.logHost(h, "%s receives %s", p.n.name, a.Host)
		e = &meshEngine{}
		p.n.disk.engine[h] = e
		// Without a timing, a real node requests the host's robots.txt at once. It is no page here, and not judged.
		if p.hosts.of(h).next = p.w.k.now; a.Timing == (mesh.Timing{}) {
			p.hosts.of(h).next += p.w.web.hosts[h].delay
		}
	}
	p.hosts.of(h).next = max(p.hosts.of(h).next, p.w.k.now+a.Timing.Wait)
	t := mesh.Enqueued{ID: a.ID, Done: make([]bool, len(a.Links))}
	for i, k := range a.Links {
		key := keyOf(k.Hash)
		e.known |= key.bit()
		e.losses[key.url&63] = max(e.losses[key.url&63], key.losses)
		t.Done[i] = e.finished&key.bit() != 0
		if t.Done[i] {
			p.addFetchedAgain(key)
		}
	}
	p.scheduleHost(h)
	return t
}

// release releases a host once no visit to it is in progress and all its fetched pages are finished.
func (p *meshProcess) release(h int32) {
	s := p.hosts.of(h)
	e := p.n.disk.engine[h]
	if !s.releasing || s.fetching || e != nil && e.unfinished != 0 {
		return
	}
	s.releasing = false
	p.afterDisk(func() {
		p.w.logHost(h, "%s releases %s", p.n.name, p.w.web.hosts[h].name)
		delete(p.n.disk.engine, h)
		delete(p.hosts, h)
		p.deliver(mesh.Released{Host: p.w.web.hosts[h].name,
			Timing: mesh.Timing{Delay: p.w.web.hosts[h].delay, Wait: s.next - p.w.k.now}})
	})
}

// scheduleHost schedules the next request to a host with pending pages.
func (p *meshProcess) scheduleHost(h int32) {
	s, e := p.hosts.of(h), p.n.disk.engine[h]
	if s.scheduled || s.fetching || e == nil || e.known&^(e.unfinished|e.finished) == 0 {
		return
	}
	s.scheduled = true
	if p.n.rate.Fetch > 0 {
		p.queueHost(h, s)
		return
	}
	p.after(max(s.next-p.w.k.now, 0), func() { p.tryFetch(h, s) })
}

// tryFetch fetches a page of a host if this node owns it.
func (p *meshProcess) tryFetch(h int32, s *meshHost) {
	s.scheduled = false
	e := p.n.disk.engine[h]
	if p.hosts[h] != s || e == nil || s.fetching {
		return
	}
	wait := e.known &^ (e.unfinished | e.finished)
	switch {
	case wait == 0:
	case s.next > p.w.k.now: // postponed since
		p.scheduleHost(h)
	case !p.view.Until().After(p.now()) || !p.view.Ours(p.w.web.hosts[h].name):
		s.next = p.w.k.now + time.Second
		p.scheduleHost(h)
	default:
		p.fetch(at(h, p.n.pickPage(wait, p.w.cfg.Shuffle)), s)
	}
}

func (n *meshNode) pickPage(set uint64, shuffle bool) int {
	if !shuffle {
		return lowest(set)
	}
	turn := int(hash(uint64(n.place), 0) % 64)
	return (lowest(bits.RotateLeft64(set, turn)) + 64 - turn) % 64
}

func (p *meshProcess) fetch(u url, s *meshHost) {
	w := p.w
	takes := w.k.uniform(50*time.Millisecond, 400*time.Millisecond)
	if w.cfg.SlowAnswer > 0 && u.host()%4 == 0 {
		takes = w.k.uniform(w.cfg.SlowAnswer/2, w.cfg.SlowAnswer)
	}
	s.fetching = true
	p.fetched++
	p.requests++
	if !p.n.disk.cookies[u.host()] {
		p.n.disk.cookies[u.host()] = true
		w.figures.Sessions++
	}
	w.request(p, u, takes)
	p.after(takes, func() {
		s.fetching = false
		s.next = w.k.now + w.web.hosts[u.host()].delay
		e := p.n.disk.engine[u.host()]
		if e == nil {
			return
		}
		e.unfinished |= u.bit()
		p.storeRecord(u)
		m := &pendingFinish{pages: []url{u}, unclaimed: 1}
		links := w.web.linksOf(u, nil)
		w.coverage.addLinks(links, w.k.now)
		for _, link := range links {
			if id := p.addLink(link); id > 0 && !w.cfg.parts.finishEarly {
				p.pendingByLink[id] = m
				m.unclaimed++
			}
		}
		p.linkClaimed(m)
		p.pump()
		p.scheduleHost(u.host())
	})
}

// addLink puts a link into the outbox unless this process has already met it. It returns the link's number; 0 if there
// is none.
func (p *meshProcess) addLink(u url) uint64 {
	h := u.host()
	e := p.n.disk.engine[h]
	if e != nil && e.known&u.bit() != 0 || p.offered[h]&u.bit() != 0 {
		return 0
	}
	p.offered[h] |= u.bit()
	return p.put(meshKey{u, 0})
}

func (p *meshProcess) put(k meshKey) uint64 {
	id := p.out.Put(p.w.web.hosts[k.host()].name, linkData(k))
	p.n.disk.links[id] = k
	return id
}

// linkClaimed counts down the unclaimed links, and finishes the pages after the last.
func (p *meshProcess) linkClaimed(m *pendingFinish) {
	if m.unclaimed--; m.unclaimed == 0 {
		p.finishSafely(m)
	}
}

// finish reports pages as fetched. By now other nodes have all their links.
func (p *meshProcess) finish(m *pendingFinish) {
	for _, u := range m.pages {
		h, k := u.host(), meshKey{u, 0}
		if e := p.n.disk.engine[h]; e != nil {
			k.losses = e.losses[u&63]
			e.unfinished &^= u.bit()
			e.finished |= u.bit()
		}
		p.finished[h] |= u.bit()
		p.deliver(mesh.Finished{Host: p.w.web.hosts[h].name, Hashes: []mesh.Hash{hashOf(k)}})
		p.release(h)
	}
}

// pump sends the links of the outbox, and repeats until it is empty.
func (p *meshProcess) pump() { p.pumpAfter(200 * time.Millisecond) }

func (p *meshProcess) pumpAfter(d time.Duration) {
	if p.pumping || p.out.Len() == 0 {
		return
	}
	p.pumping = true
	p.after(d, func() {
		p.pumping = false
		for _, b := range p.out.Batches(p.now(), p.peer.Machine().FirstBackup) {
			from := p.n.name
			p.send(b.To, LinksMessage, len(b.Data), envelope{f: func(o *meshProcess) {
				o.deliver(mesh.Offered{From: from, Number: b.Number, Links: o.w.decode(b)})
			}})
		}
		if hosts, _ := p.out.Unrouted(); len(hosts) > 0 {
			p.deliver(mesh.Unrouted{Hosts: hosts})
		}
		p.pumpAfter(600 * time.Millisecond)
	})
}

func (w *meshWorld) decode(b member.Batch) (links []mesh.HostLink) {
	for data := b.Data[1:]; len(data) > 0; {
		size, n := binary.Uvarint(data)
		k := readKey(data[n:])
		data = data[n+int(size):]
		links = append(links, mesh.HostLink{Host: w.web.hosts[k.host()].name, Link: mesh.Link{Hash: hashOf(k),
			Item: itemData}})
	}
	return links
}

func (p *meshProcess) answered(from strategy.Node, a mesh.Answer) {
	for _, r := range p.out.Answered(from, a.Number, a.Refused, p.now()) {
		for id := r.First; id <= r.Last; id++ {
			delete(p.n.disk.links, id)
			if m := p.pendingByLink[id]; m != nil {
				delete(p.pendingByLink, id)
				p.linkClaimed(m)
			}
		}
	}
}

// hasPending reports whether a host has pending pages or a request in flight.
func (p *meshProcess) hasPending(host string) bool {
	h := p.w.web.byName[host]
	e := p.n.disk.engine[h]
	return p.hosts.of(h).fetching || e != nil && e.known&^e.finished != 0
}

// isIdle reports whether the node has no pending links or pages.
func (p *meshProcess) isIdle() (bool, uint64) {
	if p.out.Len() > 0 {
		return false, 0
	}
	for _, e := range p.n.disk.engine {
		if e.known&^e.finished != 0 {
			return false, 0
		}
	}
	return true, 0
}

// reportLoad reports the node's load, and repeats that every interval.
func (p *meshProcess) reportLoad() {
	p.deliver(p.load())
	p.after(p.w.cfg.Interval, p.reportLoad)
}

// load returns the node's load since the last call.
func (p *meshProcess) load() mesh.Load {
	interval := p.w.cfg.Interval.Seconds()
	fetched := float64(p.fetched) / interval
	l := mesh.Load{Busy: p.w.cfg.Busy, Rate: fetched}
	var queues []mesh.QueuedHost
	for h, e := range p.n.disk.engine {
		n := int64(bits.OnesCount64(e.known &^ (e.unfinished | e.finished)))
		l.Waiting += n
		if n > 1 {
			queues = append(queues, mesh.QueuedHost{Pending: n, Each: p.w.web.hosts[h].delay})
		}
	}
	if p.w.cfg.Paper {
		l.Rate = cmp.Or(p.n.rate.Fetch, fetched)
	} else {
		l.Rate = cmp.Or(p.n.rate.Fetch, freeRate)
		slices.SortFunc(queues, func(a, b mesh.QueuedHost) int {
			return cmp.Or(cmp.Compare(a.Pending, b.Pending), cmp.Compare(a.Each, b.Each))
		})
		l.Backlog = mesh.BacklogOf(l.Waiting, queues, l.Rate)
	}
	l.Arriving = max(0, float64(l.Waiting-p.waiting)/interval+fetched)
	p.waiting, p.fetched = l.Waiting, 0
	return l
}

// freeRate is the rate, in URLs per second, that a node without a limit assumes.
const freeRate = 0.5

// selectSpare selects the hosts to give to another node, as a real node does.
func (p *meshProcess) selectSpare(a mesh.Spare) mesh.Spared {
	waiting := map[int32]int64{}
	for h, e := range p.n.disk.engine {
		if n := int64(bits.OnesCount64(e.known &^ (e.unfinished | e.finished))); n > 0 && !p.hosts.of(h).fetching {
			waiting[h] = n
		}
	}
	hosts := slices.Sorted(maps.Keys(waiting))
	slices.SortStableFunc(hosts, func(g, h int32) int { return cmp.Compare(waiting[h], waiting[g]) })
	names, pending := make([]string, len(hosts)), make([]int64, len(hosts))
	for i, h := range hosts {
		names[i], pending[i] = p.w.web.hosts[h].name, waiting[h]
	}
	s := a.Select(names, pending)
	p.w.figures.MovedHosts += len(s.Hosts)
	return s
}
