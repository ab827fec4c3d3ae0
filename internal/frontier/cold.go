package frontier

import (
	"container/heap"
	"time"
)

// manyItems is the length of a queue from which its first block is read as soon as its host is in memory. A block that is put before
// one that was not read does not know what is below, and all such blocks have to be read when the host's time comes.
const manyItems = 4 * maxBlockItems

// recall brings a cold host back as a host, without reading its queue if that is short: nil if there is none of that name.
func (f *Frontier) recall(key string) *host {
	id := f.disk.table.find(f.disk.table.identity(key))
	if id == 0 {
		return nil
	}
	h := f.revive(id, key)
	if len(h.links) > 0 && h.links[0].count > manyItems {
		f.fail(f.expand(h, 0))
	}
	f.disk.settle(h)
	return h
}

// revive makes a host of a record. Of its queue it knows where on disk it begins.
func (f *Frontier) revive(id uint32, key string) *host {
	d := f.disk
	r := d.table.at(id)
	h := f.newHost(string([]byte(key)))
	s := unpack(r.state)
	h.id, h.next, h.deepest = id, d.time(s.next), s.deepest
	h.delay = time.Duration(r.delay) * time.Millisecond
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
	if r.top != 0 {
		l := link{at: r.top, count: r.count}
		if r.is(hasRobots) {
			l.key.rank = robotsRank
		}
		h.links = append(h.links, l)
	}
	if r.eligible() {
		d.eligible--
	}
	f.changed(id).set(isHot)
	h.in = idle
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

// sendAway makes a host cold.
func (f *Frontier) sendAway(h *host) error {
	d := f.disk
	f.touch(h)
	if err := f.write(h); err != nil {
		return err
	}
	if h.id == 0 {
		if h.id = d.table.n + 1; d.cut != nil {
			d.cut.saveChunk((h.id - 1) >> chunkBits)
		}
		h.id = d.table.add(d.table.identity(h.key))
	}
	f.leave(h)
	r := f.changed(h.id)
	f.describe(h, r, r.state&isQueued)
	if len(h.parked) > 0 {
		d.parked[h.id] = h.parked
	}
	if h.in != idle {
		heap.Remove(&f.heaps[h.in], h.index)
	}
	if r.eligible() {
		d.eligible++
		d.enqueue(h.id)
	}
	delete(f.hosts, h.key)
	d.charge(h, -h.bytes)
	d.stop(h)
	d.unring(h)
	d.forget(h)
	return nil
}

// forget keeps a host's room for another.
func (d *virtualizer) forget(h *host) {
	clear(h.waiting)
	waiting, links, flying := h.waiting[:0], h.links[:0], h.flying[:0]
	*h = host{}
	if cap(waiting) <= maxBlockItems && cap(links) <= maxBlockLinks && len(d.free) < 1<<14 {
		h.waiting, h.links, h.flying = waiting, links, flying
		d.free = append(d.free, h)
	}
}

// describe writes a host that was written to disk into a record.
func (f *Frontier) describe(h *host, r *record, flags uint64) {
	s := status{next: f.disk.tick(h.next), failures: h.failures.n, throttles: h.throttles.n, deepest: h.deepest, flags: flags}
	for _, c := range []struct {
		is   bool
		flag uint64
	}{{h.doubtful, isDoubtful}, {h.backing, isBacking}, {!h.slot.IsZero() && h.slot.Equal(h.next), hasTurn},
		{len(h.parked) > 0, isParked}, {h.first().rank == robotsRank, hasRobots}} {
		if c.is {
			s.flags |= c.flag
		}
	}
	r.state = s.pack()
	r.delay = uint32((h.delay + time.Millisecond - 1) / time.Millisecond)
	r.count, r.top = h.count(), h.place()
}

// enqueue lets a cold host wait for its time.
func (d *virtualizer) enqueue(id uint32) {
	r := d.table.at(id)
	if r.is(isQueued) {
		return
	}
	r.set(isQueued)
	if next := r.next(); next < d.wheel.turn*turnTicks {
		d.due.push(&d.table, id)
	} else {
		d.wheel.add(&d.table, id, next)
	}
}

// recallDue reads the queues of cold hosts whose time has come or is near, and says after which time to look again.
func (f *Frontier) recallDue(now time.Time) time.Duration {
	d := f.disk
	if d == nil {
		return time.Hour
	}
	d.wheel.advance(&d.table, d.tick(now.Add(maxAhead)), &d.due)
	for range recallStep {
		l := d.nextDue()
		if l == nil {
			break
		}
		if err := f.recallOne(l); err != nil {
			f.fail(err)
			break
		}
	}
	switch {
	case d.nextDue() != nil:
		return 0
	case d.wheel.n == 0:
		return time.Hour
	}
	return d.time(d.wheel.turn * turnTicks).Add(-maxAhead).Sub(now)
}

// nextDue is the list that the next host to be read is in, nil if none is to be.
func (d *virtualizer) nextDue() *list {
	switch {
	case d.suspects.n > 0 && d.ahead[1] < max(1, d.stock/4):
		return &d.suspects
	case d.due.n > 0 && d.ahead[0] < d.stock:
		return &d.due
	}
	return nil
}

// recallOne reads the first host of a list, if it is cold and its time has come or is near.
func (f *Frontier) recallOne(l *list) error {
	d := f.disk
	id := l.pop(&d.table)
	r := d.table.at(id)
	r.unset(isQueued)
	switch {
	case r.is(isHot) || !r.eligible():
		return nil
	case r.next() >= d.wheel.turn*turnTicks:
		d.enqueue(id)
		return nil
	case r.is(isDoubtful) && l == &d.due:
		r.set(isQueued)
		d.suspects.push(&d.table, id)
		return nil
	}
	b, err := d.segments.read(r.top)
	if err != nil {
		r.set(isQueued)
		l.push(&d.table, id)
		return err
	}
	h := f.revive(id, b.host)
	f.install(h, 0, &b)
	h.ahead, h.aheadAs = true, 0
	if h.doubtful {
		h.aheadAs = 1
	}
	d.ahead[h.aheadAs]++
	f.place(h)
	return nil
}
