package frontier

// A victim is a segment that is being emptied, so that its room can be given back.
type victim struct {
	segment *segment
	offset  int64 // of the next frame to be looked at
}

const (
	slackSegments = 4 // that may be empty before any is compacted
	compactPace   = 4 // bytes looked at for each byte written: room for half as much again comes back
)

// wasteful is the segment with the least part in use, nil as long as the whole has not too much room out of use.
func (s *segments) wasteful() *segment {
	if s.size <= 3*s.live+slackSegments*s.full {
		return nil
	}
	var worst *segment
	for _, seg := range s.all {
		if seg == s.current || seg.stuck {
			continue
		}
		if worst == nil || seg.live*worst.size < worst.live*seg.size {
			worst = seg
		}
	}
	return worst
}

// compact empties segments that are mostly out of use, as fast as others are filled, so that nobody has to wait for it long.
func (f *Frontier) compact() error {
	d := f.disk
	work := compactPace * d.segments.written
	d.segments.written = 0
	for work > 0 {
		if d.victim == nil {
			seg := d.segments.wasteful()
			if seg == nil {
				return nil
			}
			d.victim = &victim{segment: seg}
		}
		n, err := f.empty(d.victim)
		if err != nil {
			return err
		}
		work -= n
	}
	d.segments.written = 0 // what was moved is no cause to move more
	return nil
}

// empty looks at the victim's next frame, and moves it if it is in use: a chunk as it is, of a block all that its host has in the
// segment.
func (f *Frontier) empty(v *victim) (int64, error) {
	s := f.disk.segments
	if s.all[v.segment.id] != v.segment || v.offset >= v.segment.size {
		v.segment.stuck = true
		f.disk.victim = nil
		return 0, nil
	}
	at := newLoc(v.segment.id, v.offset)
	frame, err := s.frame(at, readAhead)
	if err != nil {
		return 0, err
	}
	n := int64(len(frame) + frameLen)
	f.dec.b, f.dec.bad = frame, false
	switch f.dec.byte() {
	case frameChunk:
		err = f.moveChunk(uint32(f.dec.uint()), at, frame)
	case frameBlock:
		err = f.pull(f.dec.string(), v.segment.id)
	default:
		err = damaged(s.name(at.segment()), at.offset(), errBlock)
	}
	if err != nil {
		return 0, err
	}
	v.offset += n
	return n, nil
}

// moveChunk copies a chunk to the current segment, if its bucket is still there.
func (f *Frontier) moveChunk(id uint32, at loc, frame []byte) error {
	d := f.disk
	b := d.buckets[id]
	if b == nil {
		return nil
	}
	for i := range b.chunks {
		if b.chunks[i].at != at {
			continue
		}
		d.save(b)
		to, n, err := d.segments.append(func(w *writer) { w.b = append(w.b, frame...) })
		if err != nil {
			return err
		}
		b.chunks[i] = chunk{to, n}
		d.segments.count(at, -n)
		return nil
	}
	return nil
}

// pull takes all blocks that a host has in a segment out of it.
func (f *Frontier) pull(name string, segment uint32) error {
	if h := f.hosts[name]; h != nil {
		f.touch(h)
		err := f.pullBlocks(h, segment)
		f.place(h)
		return err
	}
	d := f.disk
	id := d.table.find(d.table.identity(name))
	if id == 0 || d.table.at(id).top == 0 {
		return nil
	}
	// Only the blocks of a cold host move. What its bucket knows of them, the first key and how many items there are, stays true.
	var spent []chunk
	h := &host{key: name, links: []link{{at: d.table.at(id).top}}, virtual: virtual{spent: &spent}}
	defer func() { d.charge(h, -h.bytes) }()
	if err := f.pullBlocks(h, segment); err != nil {
		return err
	}
	if err := f.store(h, false); err != nil {
		return err // the record leads to the old blocks
	}
	f.changed(id).top = h.links[0].at
	for _, c := range spent {
		d.segments.count(c.at, -c.size)
	}
	return nil
}

func (f *Frontier) pullBlocks(h *host, segment uint32) error {
	for {
		i := oldLink(h.links, segment)
		if i < 0 {
			return nil
		}
		if err := f.expand(h, i); err != nil {
			return err
		}
		if h.bytes > 2*f.disk.window {
			if err := f.spill(h, max(maxBlockItems, len(h.waiting)/2)); err != nil {
				return err
			}
		}
	}
}

// oldLink is the index of a link below which there may be blocks of a segment, or of an older one; -1 if there is none.
func oldLink(links []link, segment uint32) int {
	for i := range links {
		if links[i].oldest <= segment {
			return i
		}
	}
	return -1
}
