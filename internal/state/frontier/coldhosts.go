package frontier

import "time"

// ticks converts times to ticks, the unit of records and calendars: milliseconds since base.
type ticks struct{ base time.Time }

// tick rounds up, so that no host is visited early.
func (t ticks) tick(at time.Time) int64 {
	return int64((at.Sub(t.base) + time.Millisecond - 1) / time.Millisecond)
}

func (t ticks) time(tick int64) time.Time {
	return t.base.Add(time.Duration(tick) * time.Millisecond)
}

// coldHosts holds the records of the hosts that are not in memory, and totals over them. Records of hosts in memory are
// marked as hot and not counted. The frontier's lock guards it.
type coldHosts struct {
	ticks
	table      table
	polite     *politeness
	saver      *saver
	parked     map[uint32]map[string]bool // origins whose robots.txt a parked host waits for
	pending    int                        // number of items
	eligible   int                        // hosts with an item that may be handed out
	backingOff int                        // hosts that back off
}

func newColdHosts(base time.Time, p *politeness, v *saver) *coldHosts {
	return &coldHosts{ticks: ticks{base}, polite: p, saver: v, parked: make(map[uint32]map[string]bool)}
}

// find returns the number of a host's record, 0 if there is none.
func (c *coldHosts) find(key string) uint32 {
	return c.table.find(c.table.identity(key))
}

// isCold reports whether a host has pending items and is not in memory.
func (r *record) isCold() bool { return r.count > 0 && !r.is(isHot) }

// changed returns a record for a change that does not affect the totals.
func (c *coldHosts) changed(id uint32) *record {
	c.saver.saveRecord(id)
	return c.table.at(id)
}

// update changes a record and adjusts the totals.
func (c *coldHosts) update(id uint32, change func(*record)) {
	r := c.changed(id)
	c.count(r, -1)
	change(r)
	c.count(r, 1)
}

// count adds n times a record's values to the totals.
func (c *coldHosts) count(r *record, n int) {
	if r.is(isHot) {
		return
	}
	c.pending += n * int(r.count)
	if r.eligible() {
		c.eligible += n
	}
	if r.is(isBacking) {
		c.backingOff += n
	}
}

// add creates a record for a host in memory and returns its number.
func (c *coldHosts) add(key string) uint32 {
	c.saver.saveRecord(c.table.n + 1)
	id := c.table.add(c.table.identity(key))
	c.table.at(id).set(isHot)
	return id
}

// restore adds a record from a checkpoint.
func (c *coldHosts) restore(id uint32, r *record) {
	c.count(r, 1)
	c.table.set(id, r)
}

// park holds the ordinary items of a host back until unpark is called for the same origin.
func (c *coldHosts) park(id uint32, origin string) {
	parked := c.parked[id]
	if parked == nil {
		parked = make(map[string]bool, 1)
		c.parked[id] = parked
	}
	parked[origin] = true
	c.update(id, func(r *record) { r.set(isParked) })
}

func (c *coldHosts) unpark(id uint32, origin string) {
	parked := c.parked[id]
	delete(parked, origin)
	if len(parked) == 0 {
		delete(c.parked, id)
		c.update(id, func(r *record) { r.unset(isParked) })
	}
}

// removeParked removes and returns the origins for which a host is parked.
func (c *coldHosts) removeParked(id uint32) map[string]bool {
	parked := c.parked[id]
	delete(c.parked, id)
	return parked
}

// setRequestedDelay sets the delay that a host requests. If its next time becomes later, the host keeps its bucket, and
// is moved when that is read.
func (c *coldHosts) setRequestedDelay(id uint32, key string, delay time.Duration) {
	r := c.changed(id)
	base := c.polite.baseDelayOf(key)
	was := max(base, r.requestedDelay())
	r.setRequestedDelay(delay, r.away())
	if more := max(base, delay) - was; r.next() > 0 && more > 0 {
		r.setNext(r.next() + int64(more/time.Millisecond))
	}
}

// postpone moves a host's next time to a later one.
func (c *coldHosts) postpone(id uint32, until time.Time) {
	r := c.changed(id)
	r.setNext(max(r.next(), c.tick(until)))
}

// restartDelay makes a host wait its full delay from now.
func (c *coldHosts) restartDelay(id uint32, key string, now time.Time) {
	c.postpone(id, now.Add(max(c.polite.baseDelayOf(key), c.table.at(id).requestedDelay())))
}

// clearAway marks a host as not away.
func (c *coldHosts) clearAway(id uint32) {
	r := c.changed(id)
	r.setRequestedDelay(r.requestedDelay(), false)
}

// retime adjusts the next times of all cold hosts after the delays have changed, and reports whether one became
// earlier. A host whose time became later keeps its bucket, and is moved when that is read.
func (c *coldHosts) retime(was time.Duration) (sooner bool) {
	for id := uint32(1); id <= c.table.n; id++ {
		r := c.table.at(id)
		if r.is(isHot) || r.delay&hasOwnDelay != 0 { // its own delay is applied when it is loaded
			continue
		}
		before := max(was, r.requestedDelay())
		requested := c.polite.bound(r.requestedDelay())
		more := int64((max(c.polite.delay, requested) - before) / time.Millisecond)
		if more == 0 && requested == r.requestedDelay() || r.next() == 0 {
			continue
		}
		r = c.changed(id)
		r.setRequestedDelay(requested, r.away())
		if more < 0 && (r.is(isBacking) || r.is(hasTurn)) {
			continue
		}
		r.setNext(max(r.next()+more, 1))
		sooner = sooner || more < 0
	}
	return sooner
}

// describe writes a host into a record. The record names no bucket.
func (c *coldHosts) describe(h *host, r *record) {
	s := status{next: c.tick(h.clock.next), failures: h.clock.failures.n, throttles: h.clock.throttles.n,
		deepest: h.queue.deepest}
	for _, f := range [...]struct {
		is   bool
		flag uint64
	}{{h.clock.suspect, isSuspect}, {h.clock.backingOff, isBacking}, {h.hasTurn(), hasTurn}, {len(h.parked) > 0, isParked},
		{h.queue.first().rank == robotsRank, hasRobots}} {
		if f.is {
			s.flags |= f.flag
		}
	}
	r.state = s.pack()
	r.setRequestedDelay(h.clock.requestedDelay, h.away)
	r.setOwnDelay(h.clock.own.HasDelay)
	r.count, r.top, r.bucket = h.queue.count(), 0, 0
	if len(h.queue.links) > 0 {
		r.top = h.queue.links[0].at
	}
}
