package frontier

// Remove takes hosts out with all that waits there, and returns the fetches of robots.txt that were among it, or under way. What is known of the
// hosts' times stays, and that they are away until something of theirs is added again. A visit that is under way there may be given
// back as any other, but what it brings back is not kept.
//
// After an error, of a disk that cannot be read, some of the hosts are out. It may be called again.
func (f *Frontier) Remove(keys ...string) (robots []Item, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := removal{f: f}
	for _, key := range keys {
		if err := r.host(key); err != nil {
			return r.robots, err
		}
	}
	for b, ids := range r.asleep {
		if err := r.bucket(b, ids); err != nil {
			return r.robots, err
		}
	}
	f.shrink()
	return r.robots, nil
}

type removal struct {
	f      *Frontier
	robots []Item
	asleep map[*bucket]map[uint32]bool // hosts whose buckets have to be read
	blocks []chunk                     // of the host at hand
	items  []Item                      // there, that Gone may speak of
}

func (r *removal) host(key string) error {
	f := r.f
	if h := f.hosts[key]; h != nil {
		return r.hot(h)
	}
	id := uint32(0)
	if f.disk != nil {
		id = f.disk.table.find(f.disk.table.identity(key))
	}
	if id == 0 {
		return r.hot(f.host(key)) // never met
	}
	rec := f.disk.table.at(id)
	if b := f.disk.buckets[rec.bucket]; b != nil && (len(f.gone) > 0 || rec.is(hasRobots)) {
		if r.asleep == nil {
			r.asleep = map[*bucket]map[uint32]bool{}
		}
		if r.asleep[b] == nil {
			r.asleep[b] = map[uint32]bool{}
		}
		r.asleep[b][id] = true
		return nil
	}
	return r.cold(key, id, nil)
}

// bucket takes hosts out of which the bucket has something that must be known.
func (r *removal) bucket(b *bucket, ids map[uint32]bool) error {
	parts, err := r.f.parts(b)
	if err != nil {
		return err
	}
	for len(parts) > 0 {
		n := sameHost(parts)
		if id := parts[0].id; ids[id] {
			s, err := r.f.sleeper(parts[:n], nil)
			if err == nil {
				err = r.cold(s.name, id, s.items)
			}
			if err != nil {
				return err
			}
		}
		parts = parts[n:]
	}
	return nil
}

func (r *removal) hot(h *host) error {
	f := r.f
	f.touch(h)
	if err := r.read(h.key, h.waiting, h.links); err != nil {
		return err
	}
	f.waiting -= int(h.count())
	for i := range h.waiting {
		f.disk.charge(h, -h.waiting[i].cost())
	}
	for _, it := range h.flying {
		if it.Robots != "" {
			r.robots = append(r.robots, *it)
		}
	}
	clear(h.waiting)
	h.waiting, h.links, h.parked, h.flying = h.waiting[:0], nil, nil, nil
	h.life++
	h.away = true
	f.place(h)
	r.let()
	return nil
}

// cold takes a host out that is not in memory. What its bucket has of it counts no longer, and the bucket takes no more hosts, as in call.
func (r *removal) cold(key string, id uint32, front []entry) error {
	f, d := r.f, r.f.disk
	rec := d.table.at(id)
	var links []link
	if rec.top != 0 {
		links = []link{{at: rec.top}}
	}
	if err := r.read(key, front, links); err != nil {
		return err
	}
	if b := d.buckets[rec.bucket]; b != nil {
		b.closed = true
	}
	f.waiting -= int(rec.count)
	if rec.is(isBacking) {
		f.backing--
	}
	f.reckon(id, func(rec *record) {
		rec.count, rec.top, rec.bucket = 0, 0, 0
		rec.setWish(rec.wish(), true)
		rec.unset(isBacking | hasTurn | isParked | hasRobots)
	})
	delete(d.parked, id)
	r.let()
	return nil
}

// read finds out what a host has: blocks, fetches of robots.txt, and what is gone.
func (r *removal) read(key string, front []entry, links []link) error {
	r.blocks, r.items = r.blocks[:0], r.items[:0]
	if err := r.note(key, front); err != nil {
		return err
	}
	for todo := append([]link(nil), links...); len(todo) > 0; {
		at := todo[len(todo)-1].at
		b, err := r.f.block(at)
		if err == nil {
			err = r.note(key, b.items)
		}
		if err != nil {
			return err
		}
		r.blocks = append(r.blocks, chunk{at, b.size})
		todo = append(todo[:len(todo)-1], b.links...)
	}
	return nil
}

func (r *removal) note(key string, entries []entry) error {
	for i := range entries {
		if len(r.f.gone) == 0 && entries[i].rank != robotsRank {
			continue
		}
		it, err := r.f.dec.item(key, &entries[i])
		if err != nil {
			return err
		}
		r.items = append(r.items, it)
	}
	return nil
}

// let lets go of what read has found.
func (r *removal) let() {
	for _, b := range r.blocks {
		r.f.disk.segments.count(b.at, -b.size)
	}
	for i := range r.items {
		if it := &r.items[i]; it.Robots != "" {
			r.robots = append(r.robots, *it)
		} else {
			r.f.isGone(it.URL)
		}
	}
}
