package frontier

import "sync"

// removals removes hosts with all their items. It reads the items later, for robots.txt fetches and suppressed URLs.
// The frontier's lock guards it.
type removals struct {
	mu         *sync.Mutex   // the frontier's lock
	reading    chan struct{} // semaphore of readAll
	bench      *workbench
	suppressed *suppression
	saver      *saver
	pages      *pager // nil, with those below, if all is in memory
	cold       *coldHosts
	buckets    *buckets
	reader     *bucketReader
	segments   *segments

	detached []*detached // removed and not yet read
	fetches  []Item      // robots.txt fetches found in them
}

// A detached queue was removed and is not yet read. Nothing else refers to it.
type detached struct {
	host   string
	era    int // checkpoint era in which it was removed
	items  []entry
	links  []link
	bucket *bucket // instead of the others: a copy of a bucket from which hosts were removed
}

// remove removes the items of hosts, and marks the hosts as away.
func (r *removals) remove(keys []string) {
	copies := map[*bucket]*bucket{}
	for _, key := range keys {
		id := uint32(0)
		if r.cold != nil && r.bench.hosts[key] == nil {
			id = r.cold.find(key)
		}
		if id == 0 {
			r.removeHot(r.bench.host(key)) // creates the host if it is unknown
		} else {
			r.removeCold(key, id, copies)
		}
	}
}

func (r *removals) removeHot(h *host) {
	r.saver.saveHost(h)
	q := &h.queue
	r.bench.pending -= int(q.count())
	for i := range q.front {
		r.bench.residents.charge(q, -q.front[i].cost())
	}
	for _, it := range h.visits.items {
		if it.Robots != "" {
			r.fetches = append(r.fetches, *it)
		}
	}
	if len(q.links) > 0 || q.first().rank == robotsRank || !r.suppressed.isEmpty() {
		r.detach(&detached{host: h.key, items: q.front, links: q.links})
		q.front, q.arena = nil, nil
	}
	if q.ranks != nil {
		q.ranks.moves, q.ranks.best, q.ranks.missedMoves = q.ranks.moves[:0], lastKey.rank, 0
	}
	clear(q.front)
	q.front, q.links, h.parked, h.visits.items = q.front[:0], nil, nil, nil
	h.visits.removals++
	h.away = true
	r.bench.place(h)
}

// removeCold removes the items of a cold host. Its entries in the bucket are no longer live. The bucket is closed,
// because if the host returned to it, they would be live again.
func (r *removals) removeCold(key string, id uint32, copies map[*bucket]*bucket) {
	rec := r.cold.table.at(id)
	if rec.top != 0 {
		r.detach(&detached{host: key, links: []link{{at: rec.top}}})
	}
	if b := r.buckets.byID[rec.bucket]; b != nil {
		b.closed = true
		if !r.suppressed.isEmpty() || rec.is(hasRobots) {
			if copies[b] == nil {
				copies[b] = r.buckets.copy(b)
				r.detach(&detached{bucket: copies[b]})
			}
			copies[b].removed[id] = true
		}
	}
	r.cold.update(id, func(rec *record) {
		rec.count, rec.top, rec.bucket = 0, 0, 0
		rec.setRequestedDelay(rec.requestedDelay(), true)
		rec.unset(isBacking | hasTurn | isParked | hasRobots)
	})
	r.cold.removeParked(id)
}

func (r *removals) detach(q *detached) {
	q.era = r.saver.currentEra()
	r.detached = append(r.detached, q)
}

// drain removes and returns the robots.txt fetches found so far.
func (r *removals) drain() []Item {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.fetches
	r.fetches = nil
	return all
}

// readAll reads all detached queues and releases their blocks. Call it without the lock.
func (r *removals) readAll() error {
	r.reading <- struct{}{}
	defer func() { <-r.reading }()
	for {
		if more, err := r.readOne(); err != nil || !more {
			return err
		}
	}
}

func (r *removals) readOne() (more bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.detached) == 0 {
		return false, nil
	}
	q := r.detached[0]
	if q.bucket != nil {
		err = r.pages.run(func() error { return r.readBucket(q) })
	} else {
		err = r.readItems(q)
	}
	if err != nil {
		return false, err
	}
	r.detached[0], r.detached = nil, r.detached[1:]
	return true, nil
}

func (r *removals) readBucket(q *detached) error {
	err := r.reader.hosts(q.bucket, func(parts []part) error {
		s, err := r.reader.host(parts, nil)
		if err != nil {
			return err
		}
		return r.end(q, s.name, s.items)
	})
	if err == nil {
		r.pages.unpin()
	}
	return err
}

func (r *removals) readItems(q *detached) error {
	if err := r.end(q, q.host, q.items); err != nil {
		return err
	}
	for q.items = nil; len(q.links) > 0; {
		at, last := q.links[len(q.links)-1].at, len(q.links)-1
		err := r.pages.run(func() error {
			b, err := r.pages.block(at)
			if err == nil {
				err = r.end(q, q.host, b.items)
			}
			if err != nil {
				return err
			}
			retained := &r.segments.retained
			retained.atCut = r.saver.needsSave(q.era) // it was removed before the cut
			r.segments.count(at, -b.size)
			retained.atCut = false
			q.links = append(q.links[:last], b.links...)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// end collects the robots.txt fetches among entries, and ends the suppression of the other URLs.
func (r *removals) end(q *detached, host string, entries []entry) error {
	for i := range entries {
		if r.suppressed.isEmpty() && entries[i].rank != robotsRank {
			continue
		}
		it, err := entries[i].item(host)
		if err != nil {
			return err
		}
		if it.Robots != "" {
			r.fetches = append(r.fetches, it)
		} else if r.suppressed.consume(it.URL) && r.saver != nil && r.saver.needsSave(q.era) {
			r.saver.cut.suppressed.drop(hashURL(it.URL))
		}
	}
	return nil
}
