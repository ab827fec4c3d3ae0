package frontier

// Remove takes hosts out with all that waits there. What is known of the hosts' times stays, and that they are away
// until something of theirs is added again. A visit that is under way there may be given back as any other, but what it
// brings back is not kept.
//
// It does not wait for the disk: it detaches the queues, and Removed reads them. A checkpoint's Write does so, too.
func (f *Frontier) Remove(keys ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := removal{f: f}
	for _, key := range keys {
		r.host(key)
	}
	f.shrink()
}

// Removed reads what Remove has taken out, lets go of its room on the disk, and returns the fetches of robots.txt that
// were among it, or under way, since it was called last. After an error, of a disk that cannot be read, it may be
// called again.
func (f *Frontier) Removed() (robots []Item, err error) {
	if err := f.sweep(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	robots, f.orphans = f.orphans, nil
	return robots, nil
}

// A detached queue is one that was taken out and is yet to be read. Nothing leads to it but this.
type detached struct {
	key    string
	era    int // of checkpoints, in which it was taken out
	items  []entry
	links  []link
	bucket *bucket // instead: a copy, of which some hosts were taken out
}

type removal struct {
	f       *Frontier
	buckets map[*bucket]*bucket // and their copies
}

func (r *removal) host(key string) {
	f := r.f
	if h := f.hosts[key]; h != nil {
		r.hot(h)
		return
	}
	id := uint32(0)
	if f.disk != nil {
		id = f.disk.table.find(f.disk.table.identity(key))
	}
	if id == 0 {
		r.hot(f.host(key)) // never met
		return
	}
	r.cold(key, id)
}

func (r *removal) hot(h *host) {
	f := r.f
	f.touch(h)
	f.waiting -= int(h.count())
	for i := range h.waiting {
		f.disk.charge(h, -h.waiting[i].cost())
	}
	for _, it := range h.flying {
		if it.Robots != "" {
			f.orphans = append(f.orphans, *it)
		}
	}
	if len(h.links) > 0 || h.first().rank == robotsRank || len(f.gone) > 0 {
		r.detach(&detached{key: h.key, items: h.waiting, links: h.links})
		h.waiting, h.data = nil, nil
	}
	if h.ranks != nil {
		h.ranks.moves, h.ranks.best, h.ranks.missed = h.ranks.moves[:0], lastKey.rank, 0
	}
	clear(h.waiting)
	h.waiting, h.links, h.parked, h.flying = h.waiting[:0], nil, nil, nil
	h.life++
	h.away = true
	f.place(h)
}

// cold takes a host out that is not in memory. What its bucket has of it counts no longer, and the bucket takes no more
// hosts, as in call.
func (r *removal) cold(key string, id uint32) {
	f, d := r.f, r.f.disk
	rec := d.table.at(id)
	if rec.top != 0 {
		r.detach(&detached{key: key, links: []link{{at: rec.top}}})
	}
	if b := d.buckets[rec.bucket]; b != nil {
		b.closed = true
		if len(f.gone) > 0 || rec.is(hasRobots) {
			r.copy(b).removed[id] = true
		}
	}
	f.waiting -= int(rec.count)
	if rec.is(isBacking) {
		f.backing--
	}
	f.reckon(id, func(rec *record) {
		rec.count, rec.top, rec.bucket = 0, 0, 0
		rec.setRequestedDelay(rec.requestedDelay(), true)
		rec.unset(isBacking | hasTurn | isParked | hasRobots)
	})
	delete(d.parked, id)
}

// copy is a bucket as it is now. Its segments stay until it is read.
func (r *removal) copy(b *bucket) *bucket {
	if c := r.buckets[b]; c != nil {
		return c
	}
	c := &bucket{id: b.id, removed: map[uint32]bool{}, size: b.size}
	c.buf, c.chunks = append(c.buf, b.buf...), append(c.chunks, b.chunks...)
	if r.buckets == nil {
		r.buckets = map[*bucket]*bucket{}
	}
	r.buckets[b] = c
	r.f.disk.segments.pins++
	r.detach(&detached{bucket: c})
	return c
}

func (r *removal) detach(q *detached) {
	if d := r.f.disk; d != nil {
		q.era = d.era
	}
	r.f.detached = append(r.f.detached, q)
}

// sweep reads all that was taken out so far.
func (f *Frontier) sweep() error {
	f.sweeping <- struct{}{}
	defer func() { <-f.sweeping }()
	for {
		if more, err := f.sweepOne(); err != nil || !more {
			return err
		}
	}
}

func (f *Frontier) sweepOne() (more bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.detached) == 0 {
		return false, nil
	}
	q := f.detached[0]
	if q.bucket != nil {
		err = f.paged(func() error { return f.noteBucket(q) })
	} else {
		err = f.noteQueue(q)
	}
	if err != nil {
		return false, err
	}
	f.detached[0], f.detached = nil, f.detached[1:]
	return true, nil
}

// noteBucket notes what a copy of a bucket has of hosts that were taken out.
func (f *Frontier) noteBucket(q *detached) error {
	parts, err := f.parts(q.bucket)
	if err != nil {
		return err
	}
	for len(parts) > 0 {
		n := sameHost(parts)
		s, err := f.sleeper(parts[:n], nil)
		if err == nil {
			err = f.note(q, s.name, s.items)
		}
		if err != nil {
			return err
		}
		parts = parts[n:]
	}
	f.disk.segments.pins--
	f.disk.segments.bury()
	return nil
}

// noteQueue notes what a queue has, and lets go of its blocks.
func (f *Frontier) noteQueue(q *detached) error {
	if err := f.note(q, q.key, q.items); err != nil {
		return err
	}
	for q.items = nil; len(q.links) > 0; {
		at, last := q.links[len(q.links)-1].at, len(q.links)-1
		err := f.paged(func() error {
			b, err := f.block(at)
			if err == nil {
				err = f.note(q, q.key, b.items)
			}
			if err != nil {
				return err
			}
			s := f.disk.segments
			s.saving = f.disk.isCut(q.era) // it was out at the cut
			s.count(at, -b.size)
			s.saving = false
			q.links = append(q.links[:last], b.links...)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// note keeps the fetches of robots.txt among some entries, and ends what Suppress said of the others.
func (f *Frontier) note(q *detached, key string, entries []entry) error {
	for i := range entries {
		if len(f.gone) == 0 && entries[i].rank != robotsRank {
			continue
		}
		it, err := f.dec.item(key, &entries[i])
		if err != nil {
			return err
		}
		if it.Robots != "" {
			f.orphans = append(f.orphans, it)
		} else if f.isSuppressed(it.URL) && f.disk != nil && f.disk.isCut(q.era) {
			f.disk.cut.gone.drop(goneKeyOf(it.URL))
		}
	}
	return nil
}
