package frontier

import (
	"slices"
	"strings"
	"time"
)

const (
	maxFront = 64       // items of a cold host in its bucket; the others are in blocks
	bigFront = 16 << 10 // bytes of a front at which items are moved to blocks
	maxAhead = 1000 * time.Millisecond
)

// A virtualizer moves hosts between memory (workbench) and disk, and keeps memory below the limit. A host on disk is a
// record (coldHosts) with the front of its queue in a bucket by time, and the rest in blocks. (The names are BUbiNG's.)
// The frontier's lock guards it.
type virtualizer struct {
	bench     *workbench
	residents *residents
	queues    *queueStore
	addrs     *addresses
	ranking   *ranking
	polite    *politeness
	cold      *coldHosts
	buckets   *buckets
	reader    *bucketReader
	segments  *segments
	now       func() time.Time

	maxBehind int64  // limit of the bytes that are not yet written
	enc       writer // buffers for reuse
	items     []entry
}

// find returns the record number of a cold host in a bucket, 0 for any other host. Other cold hosts have no bucket to
// which a push could be appended; they are loaded without a read.
func (v *virtualizer) find(key string) uint32 {
	if v == nil || v.bench.hosts[key] != nil {
		return 0
	}
	id := v.cold.find(key)
	if id == 0 || v.cold.table.at(id).bucket == 0 {
		return 0
	}
	return id
}

// isBehind reports whether more bytes are unwritten than the limit.
func (v *virtualizer) isBehind() bool { return v != nil && v.segments.behind.bytes > v.maxBehind }

func (v *virtualizer) tick() int64 { return v.cold.tick(v.now()) }

// push adds items to the queue of a cold host without reading it.
func (v *virtualizer) push(id uint32, key string, items []Item) {
	if len(items) == 0 {
		return
	}
	w := &v.enc
	w.b = append(w.b[:0], putItems)
	v.cold.update(id, func(r *record) {
		s := unpack(r.state)
		for i := range items {
			it := items[i]
			s.deepest = v.ranking.assign(&it, s.deepest)
			if it.Robots != "" {
				s.flags |= hasRobots
			} else {
				r.setRequestedDelay(r.requestedDelay(), false)
			}
			e := v.ranking.encode(key, &it)
			w.entry(&e)
		}
		r.state = s.pack()
		r.count += uint32(len(items))
	})
	v.buckets.add(id, v.cold.table.at(id), w.b)
}

// move adds moves of items of a cold host without reading it. They are applied when the host is loaded.
func (v *virtualizer) move(id uint32, moves []Move) {
	w := &v.enc
	w.b = append(w.b[:0], putMoves)
	w.moves(v.ranking.age, moves)
	v.buckets.add(id, v.cold.table.at(id), w.b)
}

// load loads a cold host that is in no bucket, and returns nil if there is none.
func (v *virtualizer) load(key string) *host {
	id := v.cold.find(key)
	if id == 0 {
		return nil
	}
	return v.loadRecord(id, strings.Clone(key), link{})
}

// loadEarly loads a cold host from its bucket before its time. The bucket is closed, because if the host returned to
// it, its old entries would be live again.
func (v *virtualizer) loadEarly(id uint32) error {
	b := v.buckets.byID[v.cold.table.at(id).bucket]
	s, err := v.reader.find(b, id)
	if err != nil {
		return err
	}
	b.closed = true
	v.bench.place(v.makeHot(id, &s))
	return nil
}

// loadRecord creates a host from a record. The link points to its blocks; the caller adds the other items.
func (v *virtualizer) loadRecord(id uint32, key string, l link) *host {
	r := v.cold.table.at(id)
	h := v.bench.create(key, id)
	s, c := unpack(r.state), &h.clock
	h.queue.deepest = s.deepest
	h.away = r.away()
	c.next, c.requestedDelay = v.cold.time(s.next), r.requestedDelay()
	if c.own.HasDelay && !v.polite.resumed.IsZero() { // the record was restored without it
		c.postpone(v.polite.resumed.Add(c.own.Delay))
	}
	c.failures.n, c.throttles.n = s.failures, s.throttles
	c.suspect = r.is(isSuspect)
	v.bench.setBackingOff(h, r.is(isBacking))
	if s.next > 0 { // it had a request, or may have had one
		c.lastEnd = c.next.Add(-v.polite.delayOf(c)) // at the latest
	}
	if r.is(hasTurn) {
		h.addr.turn = c.next
	}
	if r.is(isParked) {
		h.parked = v.cold.removeParked(id)
	}
	if l.at = r.top; l.at != 0 {
		if r.bucket == 0 {
			l.count = r.count
		}
		h.queue.links = append(h.queue.links, l)
	}
	v.bench.pending += int(r.count)
	v.cold.update(id, func(r *record) {
		r.set(isHot)
		r.bucket = 0
	})
	v.residents.update(h)
	return h
}

// makeHot creates a host from the contents of its bucket.
func (v *virtualizer) makeHot(id uint32, s *coldHost) *host {
	h := v.loadRecord(id, s.name, link{key: s.key, count: s.rest})
	q := &h.queue
	size := 0
	for i := range s.items {
		size += len(s.items[i].data)
	}
	room := slices.Grow(q.arena[:0], size)
	for _, e := range s.items {
		n := len(room)
		room = append(room, e.data...)
		e.data = room[n:len(room):len(room)]
		q.front = append(q.front, e)
	}
	q.arena = room
	q.front.init()
	q.deepest = max(q.deepest, s.deepest)
	if q.ranks != nil {
		q.ranks.generation, q.ranks.missedMoves = s.generation, s.missedMoves
	}
	v.residents.charge(q, int64(size+entryCost*len(s.items)))
	v.bench.pending -= s.staleRobots
	return h
}

// loadBucket empties a bucket. It loads the hosts that are due by the tick soon, and moves the others to the bucket of
// their time. It may be called again after an error.
func (v *virtualizer) loadBucket(b *bucket, soon int64) error {
	if v.buckets.byID[b.id] != b {
		return nil // it was emptied already
	}
	err := v.reader.hosts(b, func(parts []part) error {
		b.closed = true
		return v.loadHost(parts, soon)
	})
	if err == nil {
		v.buckets.drop(b)
	}
	return err
}

func (v *virtualizer) loadHost(parts []part, soon int64) error {
	id := parts[0].id
	size, old := 0, false
	for i := range parts {
		size += len(parts[i].data)
		old = old || parts[i].old
	}
	due := v.cold.table.at(id).next() <= soon
	if !due && !old && size <= bigFront {
		v.buckets.move(id, v.cold.changed(id), parts, v.tick())
		return nil
	}
	s, err := v.reader.host(parts, v.items[:0])
	if err != nil {
		return err
	}
	v.items = s.items[:0]
	if !due && size <= bigFront {
		v.rebucket(id, &s)
		return nil
	}
	h := v.makeHot(id, &s)
	if due {
		v.residents.readAhead(h)
	}
	v.bench.place(h)
	return nil
}

// rebucket moves a host to the bucket of its time, without the robots.txt fetches of an earlier process.
func (v *virtualizer) rebucket(id uint32, s *coldHost) {
	v.cold.update(id, func(r *record) {
		r.count -= uint32(s.staleRobots)
		r.unset(hasRobots)
		if r.bucket = 0; r.count > 0 {
			v.buckets.place(id, r, s, v.tick())
		}
	})
}

// loadDue loads at most one bucket of a class whose hosts are due or almost due, and splits at most one for later
// times.
func (v *virtualizer) loadDue(c class, tick int64) error {
	cal, soon := &v.buckets.calendars[c], tick+maxAhead.Milliseconds()
	if b := cal.splitDue(tick); b != nil {
		if !v.residents.needsReadAhead(c) {
			// There is no room for its hosts in memory yet.
			cal.due = append(cal.due, b)
		} else if err := v.loadBucket(b, soon); err != nil {
			return err
		}
		cal.split(tick)
	}
	if len(cal.due) > 0 && v.residents.needsReadAhead(c) {
		if err := v.loadBucket(cal.due[0], soon); err != nil {
			return err
		}
		cal.due = cal.due[1:]
	}
	return nil
}

// advance processes the calendars' slots whose time has come.
func (v *virtualizer) advance(tick int64) {
	for c := range v.buckets.calendars {
		v.buckets.calendars[c].advance(tick, maxAhead.Milliseconds())
	}
}

// hasDue reports whether a bucket must be loaded or split.
func (v *virtualizer) hasDue(tick int64) bool {
	for c := range v.buckets.calendars {
		cal := &v.buckets.calendars[c]
		if cal.splitDue(tick) != nil || len(cal.due) > 0 && v.residents.needsReadAhead(class(c)) {
			return true
		}
	}
	return false
}

// nextDue returns the time at which the next bucket must be loaded or split, if there is one.
func (v *virtualizer) nextDue() (at time.Time, some bool) {
	least := int64(1<<63 - 1)
	for c := range v.buckets.calendars {
		tick, has := v.buckets.calendars[c].next(maxAhead.Milliseconds(), v.residents.needsReadAhead(class(c)))
		if has {
			least, some = min(least, tick), true
		}
	}
	return v.cold.time(least), some
}

// retime adjusts the cold hosts' next times after the delays have changed. If some are earlier, all buckets are loaded
// one after the other, and their hosts move to the buckets of their times.
func (v *virtualizer) retime(delay time.Duration) {
	if v.cold.retime(delay) {
		for c := range v.buckets.calendars {
			v.buckets.calendars[c].makeAllDue()
		}
	}
}

// hostBudget returns the memory that hosts may take: the limit without the records, the ends of buckets and the
// unwritten bytes, but at least an eighth of the limit.
func (v *virtualizer) hostBudget() int64 {
	limit := v.residents.limit
	return max(limit-v.cold.table.memory-v.buckets.maxDirty-v.maxBehind, limit/8)
}

// secondChances is the number of hosts in a session that one shrink skips.
const secondChances = 16

// shrink brings memory below its limit. It evicts the least recently used hosts. Hosts in a session get a second
// chance, because an evicted host is inactive when it is loaded again. If writing is far behind, hosts stay, because
// their items would take as much memory until they are written.
func (v *virtualizer) shrink() {
	if v == nil || v.segments.behind.bytes > 2*v.maxBehind {
		return
	}
	chances := secondChances
	for v.residents.bytes > v.hostBudget() {
		h := v.residents.oldest()
		if h == nil {
			break
		}
		if h.position.class == sound && chances > 0 {
			chances--
			v.residents.unlink(h)
			v.residents.update(h)
			continue
		}
		v.evict(h)
		v.buckets.flushSome()
	}
	v.buckets.flushSome()
}

// evict makes a host cold. If it has an item to hand out, its front goes into a bucket. If it is parked, all its items
// go into blocks.
func (v *virtualizer) evict(h *host) {
	q := &h.queue
	v.bench.saver.saveHost(h)
	q.applyMoves()
	eligible := v.bench.classOf(h) != idle
	v.queues.store(q, eligible)
	if h.residence.id == 0 {
		v.bench.setRecord(h, v.cold.add(h.key))
	}
	id := h.residence.id
	v.addrs.leave(&h.addr, v.now())
	v.cold.update(id, func(r *record) { v.cold.describe(h, r) })
	if len(h.parked) > 0 {
		v.cold.parked[id] = h.parked
	}
	if eligible {
		s := coldHost{name: h.key, items: q.front}
		if len(q.links) > 0 {
			s.key, s.rest = q.links[0].key, q.links[0].count
		}
		if q.ranks != nil {
			s.generation, s.missedMoves = q.ranks.generation, q.ranks.missedMoves
		}
		v.buckets.place(id, v.cold.table.at(id), &s, v.tick())
	}
	v.bench.remove(h)
}
