package frontier

import (
	"slices"
	"strings"
	"time"
)

const (
	maxFront = 64       // items of a cold host in its bucket; what is more goes into blocks
	bigFront = 16 << 10 // bytes there from which they may be more
)

// coldID returns the number of a cold host's record if it waits for its time, else 0.
func (f *Frontier) coldID(key string) uint32 {
	if f.disk == nil || f.hosts[key] != nil {
		return 0
	}
	id := f.disk.table.find(f.disk.table.identity(key))
	if id == 0 || f.disk.table.at(id).bucket == 0 {
		return 0
	}
	return id
}

// pushCold adds items to the queue of a host that is asleep, without reading it.
func (f *Frontier) pushCold(id uint32, key string, items []Item) {
	if len(items) == 0 {
		return
	}
	d := f.disk
	w := &d.enc
	w.b = append(w.b[:0], putItems)
	f.reckon(id, func(r *record) {
		s := unpack(r.state)
		for i := range items {
			it := items[i]
			s.deepest = f.rank(&it, s.deepest)
			if it.Robots != "" {
				s.flags |= hasRobots
			} else {
				r.setRequestedDelay(r.requestedDelay(), false)
			}
			f.enc.b = f.enc.b[:0]
			f.enc.item(key, &it)
			w.entry(&entry{f.keyOf(&it), f.enc.b})
		}
		r.state = s.pack()
		r.count += uint32(len(items))
	})
	f.waiting += len(items)
	f.putMore(id, w.b)
}

// moveCold moves items of a host that is asleep, without reading them: that is done when it comes into memory.
func (f *Frontier) moveCold(id uint32, moves []Move) {
	w := &f.disk.enc
	w.b = append(w.b[:0], putMoves)
	w.moves(f.seq, moves)
	f.putMore(id, w.b)
}

// putMore adds an entry to the bucket of a host that is asleep.
func (f *Frontier) putMore(id uint32, data []byte) {
	d := f.disk
	b := d.buckets[d.table.at(id).bucket]
	f.put(b, id, data)
	if b.size > 4*d.bucketSize && !b.crowded { // much was pushed: its hosts need more buckets, or blocks
		b.crowded = true
		d.crowded = append(d.crowded, b)
	}
}

// reckon changes the record of a cold host, and the count of those that can be handed out with it.
func (f *Frontier) reckon(id uint32, change func(*record)) {
	r := f.changed(id)
	if r.eligible() {
		f.disk.eligible--
	}
	change(r)
	if r.eligible() {
		f.disk.eligible++
	}
}

func (f *Frontier) parkCold(id uint32, origin string) {
	parked := f.disk.parked[id]
	if parked == nil {
		parked = make(map[string]bool, 1)
		f.disk.parked[id] = parked
	}
	parked[origin] = true
	f.reckon(id, func(r *record) { r.set(isParked) })
}

func (f *Frontier) unparkCold(id uint32, origin string) {
	parked := f.disk.parked[id]
	delete(parked, origin)
	if len(parked) == 0 {
		delete(f.disk.parked, id)
		f.reckon(id, func(r *record) { r.unset(isParked) })
	}
}

// delayCold sets what a host that is asleep asks for. If its next time is later now, its bucket's comes first, and it
// is put off then.
func (f *Frontier) delayCold(id uint32, key string, delay time.Duration) {
	r := f.changed(id)
	s := unpack(r.state)
	own := f.delayOf(key)
	was := max(own, r.requestedDelay())
	r.setRequestedDelay(delay, r.away())
	if more := max(own, delay) - was; s.next > 0 && more > 0 {
		s.next += int64(more / time.Millisecond)
		r.state = s.pack()
	}
}

// delayOf is a host's delay but for what it asks for itself; the crawl's where its name is not known.
func (f *Frontier) delayOf(key string) time.Duration {
	if f.cfg.Overrides == nil || key == "" {
		return f.cfg.Delay
	}
	h := host{key: key}
	f.override(&h)
	return f.ownDelay(&h)
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// putOff lets a host that is asleep owe its full delay from now.
func (f *Frontier) putOff(id uint32, key string, now time.Time) {
	r := f.changed(id)
	s := unpack(r.state)
	s.next = max(s.next, f.disk.tick(now.Add(max(f.delayOf(key), r.requestedDelay()))))
	r.state = s.pack()
}

// loadCold brings a cold host into memory that is not asleep: nil if there is none of that name.
func (f *Frontier) loadCold(key string) *host {
	id := f.disk.table.find(f.disk.table.identity(key))
	if id == 0 {
		return nil
	}
	return f.loadRecord(id, strings.Clone(key), link{})
}

// loadByID brings a host that is asleep into memory before its time. What its bucket has of it counts no longer, and
// the bucket takes no more hosts: it could be this one again.
func (f *Frontier) loadByID(id uint32) error {
	b := f.disk.buckets[f.disk.table.at(id).bucket]
	s, err := f.sleeping(b, id)
	if err != nil {
		return err
	}
	b.closed = true
	f.place(f.makeHot(id, &s))
	return nil
}

// sleeping is what a bucket has of a host.
func (f *Frontier) sleeping(b *bucket, id uint32) (coldHost, error) {
	parts, err := f.parts(b)
	if err != nil {
		return coldHost{}, err
	}
	for len(parts) > 0 {
		n := sameHost(parts)
		if parts[0].id == id {
			return f.sleeper(parts[:n], nil)
		}
		parts = parts[n:]
	}
	return coldHost{}, errBlock
}

// loadRecord makes a host of a record. Of the part of its queue that is in blocks it knows where it begins; the rest is
// the caller's to add.
func (f *Frontier) loadRecord(id uint32, key string, l link) *host {
	d := f.disk
	r := d.table.at(id)
	h := f.newHost(key)
	s := unpack(r.state)
	h.id, h.next, h.deepest = id, d.time(s.next), s.deepest
	h.delay, h.away = r.requestedDelay(), r.away()
	if h.own.HasDelay && !f.resumed.IsZero() { // which the table did not know of when the process began
		h.next = latest(h.next, f.resumed.Add(h.own.Delay))
	}
	h.failures.n, h.throttles.n = s.failures, s.throttles
	h.doubtful, h.backing = r.is(isDoubtful), r.is(isBacking)
	if s.next > 0 { // it had a request, or may have had
		h.ended = h.next.Add(-f.delay(h)) // at the latest
	}
	if r.is(hasTurn) {
		h.slot = h.next
	}
	if r.is(isParked) {
		h.parked = d.parked[id]
		delete(d.parked, id)
	}
	if l.at = r.top; l.at != 0 {
		if r.bucket == 0 {
			l.count = r.count
		}
		h.links = append(h.links, l)
	}
	if r.eligible() {
		d.eligible--
	}
	r = f.changed(id)
	r.set(isHot)
	r.bucket = 0
	h.in = idle
	d.settle(h)
	return h
}

// makeHot makes a host of what its bucket has of it.
func (f *Frontier) makeHot(id uint32, s *coldHost) *host {
	h := f.loadRecord(id, s.name, link{key: s.key, count: s.rest})
	size := 0
	for i := range s.items {
		size += len(s.items[i].data)
	}
	data := slices.Grow(h.data[:0], size)
	for _, e := range s.items {
		n := len(data)
		data = append(data, e.data...)
		e.data = data[n:len(data):len(data)]
		h.waiting = append(h.waiting, e)
	}
	h.data = data
	h.waiting.init()
	h.deepest = max(h.deepest, s.deepest)
	if h.ranks != nil {
		h.ranks.generation, h.ranks.missed = s.generation, s.missed
	}
	f.disk.charge(h, int64(size+entryCost*len(s.items)))
	f.waiting -= s.gone
	return h
}

// changed returns a record that is to be changed: a checkpoint being made has it as it was.
func (f *Frontier) changed(id uint32) *record {
	if f.disk.cut != nil {
		f.disk.cut.saveChunk((id - 1) >> chunkBits)
	}
	return f.disk.table.at(id)
}

// touch sees to it that a checkpoint being made has the host as it is.
func (f *Frontier) touch(h *host) {
	if d := f.disk; d != nil && d.cut != nil && h.era < d.era {
		d.cut.saveHost(h)
	}
}

// evict makes a host cold. If it has something to hand out it goes to a bucket, if it is parked into blocks.
func (f *Frontier) evict(h *host) {
	d := f.disk
	f.touch(h)
	f.applyMoves(h)
	waits := f.classOf(h) != idle
	f.store(h, waits)
	if h.id == 0 {
		if h.id = d.table.n + 1; d.cut != nil {
			d.cut.saveChunk((h.id - 1) >> chunkBits)
		}
		h.id = d.table.add(d.table.identity(h.key))
	}
	f.leave(h)
	r := f.changed(h.id)
	f.describe(h, r)
	if len(h.parked) > 0 {
		d.parked[h.id] = h.parked
	}
	if h.in != idle {
		f.unheap(h)
	}
	if waits {
		s := coldHost{name: h.key, items: h.waiting}
		if len(h.links) > 0 {
			s.key, s.rest = h.links[0].key, h.links[0].count
		}
		if h.ranks != nil {
			s.generation, s.missed = h.ranks.generation, h.ranks.missed
		}
		f.placeCold(h.id, r, &s)
		d.eligible++
	}
	delete(f.hosts, h.key)
	d.charge(h, -h.bytes)
	d.stop(h)
	d.unring(h)
	d.forget(h)
}

// store puts into blocks what does not go into a bucket, so that one link leads to all of them.
func (f *Frontier) store(h *host, waits bool) {
	most := len(h.waiting)
	if !waits {
		most = 0
	} else if most > maxFront {
		most = maxFront / 2
	}
	f.spill(h, most)
	f.pack(h, 1)
}

// placeCold puts what a host has for a bucket into that of its time.
func (f *Frontier) placeCold(id uint32, r *record, s *coldHost) {
	w := &f.disk.enc
	if f.cfg.Ranker == nil {
		w.b = append(w.b[:0], putHost)
	} else {
		w.b = append(w.b[:0], putRanked)
		w.uint(s.generation + 1)
		w.uint(uint64(s.missed))
	}
	w.string(s.name)
	if w.uint(uint64(s.rest)); s.rest > 0 {
		w.key(s.key)
	}
	for i := range s.items {
		w.entry(&s.items[i])
	}
	b := f.bucketFor(coldClass(r.is(isDoubtful)), r.next())
	r.bucket = b.id
	f.put(b, id, w.b)
}

// forget keeps a host's room for another.
func (d *virtualizer) forget(h *host) {
	clear(h.waiting)
	waiting, links, flying, data, ranks := h.waiting[:0], h.links[:0], h.flying[:0], h.data[:0], h.ranks
	*h = host{}
	if cap(waiting) <= 2*maxFront && cap(links) <= maxBlockLinks && cap(data) <= bigFront && len(d.free) < minStock {
		h.waiting, h.links, h.flying, h.data, h.ranks = waiting, links, flying, data, ranks
		d.free = append(d.free, h)
	}
}

// describe writes a host into a record. That it is in a bucket is the caller's to note.
func (f *Frontier) describe(h *host, r *record) {
	s := status{next: f.disk.tick(h.next), failures: h.failures.n, throttles: h.throttles.n, deepest: h.deepest}
	for _, c := range [...]struct {
		is   bool
		flag uint64
	}{{h.doubtful, isDoubtful}, {h.backing, isBacking}, {!h.slot.IsZero() && h.slot.Equal(h.next), hasTurn},
		{len(h.parked) > 0, isParked}, {h.first().rank == robotsRank, hasRobots}} {
		if c.is {
			s.flags |= c.flag
		}
	}
	r.state = s.pack()
	r.setRequestedDelay(h.delay, h.away)
	r.setOwnDelay(h.own.HasDelay)
	r.count, r.top, r.bucket = h.count(), 0, 0
	if len(h.links) > 0 {
		r.top = h.links[0].at
	}
}
