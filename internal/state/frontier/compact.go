package frontier

// A victim is a segment that is being emptied, so that its room can be given back.
type victim struct {
	segment *segment
	offset  int64  // of the next frame to be looked at
	host    string // whose blocks are on their way out; "": nobody's
	cold    *host  // stands for it while it is not in memory; nil if it is, or nothing was begun
}

// A move is of the blocks of a host that is not in memory. It holds when the host's record leads to the new ones.
type move struct {
	top   loc     // that the record led to when it was begun
	spent []chunk // blocks that were read
	made  []chunk // blocks that were written
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

// owesCompaction reports whether so much was written that compaction is worth a look.
func (d *virtualizer) owesCompaction() bool {
	s := d.segments
	return s.written >= min(writeBuffer, s.full)/4 && (d.victim != nil || s.size > 3*s.live+slackSegments*s.full)
}

// compact empties segments that are mostly out of use, as fast as others are filled, so that nobody has to wait for it
// long.
func (f *Frontier) compact() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.disk
	if !d.owesCompaction() {
		return nil
	}
	work := compactPace * d.segments.written
	d.segments.written = 0
	n := int64(0)
	empty := func() (err error) {
		written := d.segments.written
		n, err = f.empty(d.victim)
		d.segments.written = written // what was moved is no cause to move more
		return err
	}
	for work > 0 && !d.isBehind() {
		if d.victim == nil {
			seg := d.segments.wasteful()
			if seg == nil {
				return nil
			}
			d.victim = &victim{segment: seg}
		}
		if err := f.paged(empty); err != nil {
			return err
		}
		work -= n
	}
	return nil
}

// empty looks at the victim's next frame, and moves it if it is in use: a chunk as it is, of a block all that its host
// has in the segment.
func (f *Frontier) empty(v *victim) (int64, error) {
	s := f.disk.segments
	if v.host != "" {
		done, err := f.pull(v)
		if done {
			v.host = ""
		}
		return 0, err
	}
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
	f.dec.b, f.dec.bad = frame, false
	switch f.dec.byte() {
	case frameChunk:
		f.moveChunk(uint32(f.dec.uint()), at, frame)
	case frameBlock:
		v.host = f.dec.string()
	default:
		return 0, damaged(s.name(at.segment()), at.offset(), errBlock)
	}
	n := int64(len(frame) + frameLen)
	v.offset += n
	return n, nil
}

// moveChunk copies a chunk to the current segment, if its bucket is still there.
func (f *Frontier) moveChunk(id uint32, at loc, frame []byte) {
	d := f.disk
	b := d.buckets[id]
	if b == nil {
		return
	}
	for i := range b.chunks {
		if b.chunks[i].at != at {
			continue
		}
		d.save(b)
		to, n := d.segments.append(func(w *writer) { w.b = append(w.b, frame...) })
		b.chunks[i] = chunk{to, n}
		d.segments.count(at, -n)
		return
	}
}

// pull takes the blocks that a host has in the victim out of it, one at a time, and reports whether that was all.
func (f *Frontier) pull(v *victim) (done bool, err error) {
	d := f.disk
	if h := f.hosts[v.host]; h != nil {
		f.abandonMove(v)
		f.touch(h)
		done, err = f.pullBlock(h, newLoc(v.segment.id+1, 0))
		f.place(h)
		return done, err
	}
	id, top := d.table.find(d.table.identity(v.host)), loc(0)
	if id != 0 {
		top = d.table.at(id).top
	}
	if v.cold != nil && v.cold.move.top != top {
		f.abandonMove(v) // it was in memory meanwhile, or was removed
	}
	if top == 0 {
		return true, nil
	}
	// Only the blocks of a cold host move. What its bucket knows of them, the first key and how many items there are,
	// stays true.
	if v.cold == nil {
		v.cold = &host{key: v.host, links: []link{{at: top}}, virtual: virtual{move: &move{top: top}}}
	}
	h := v.cold
	if done, err = f.pullBlock(h, newLoc(v.segment.id+1, 0)); !done {
		return false, err
	}
	f.store(h, false)
	f.changed(id).top = h.links[0].at
	d.charge(h, -h.bytes)
	d.letGo(h.move.spent)
	v.cold = nil
	return true, nil
}

// abandonMove gives up what was written for a host that has come into memory, or was removed: the blocks that it had
// are its own.
func (f *Frontier) abandonMove(v *victim) {
	if h := v.cold; h != nil {
		f.disk.charge(h, -h.bytes)
		f.disk.letGo(h.move.made)
		v.cold = nil
	}
}

// letGo lets go of frames.
func (d *virtualizer) letGo(chunks []chunk) {
	for _, c := range chunks {
		d.segments.count(c.at, -c.size)
	}
}

// pullBlock takes a block of a host from before a place into memory; done says that there is none.
func (f *Frontier) pullBlock(h *host, before loc) (done bool, err error) {
	i := oldLink(h.links, before)
	if i < 0 {
		return true, nil
	}
	if err := f.expand(h, i); err != nil {
		return false, err
	}
	if h.bytes > 2*f.disk.window {
		f.spill(h, max(maxBlockItems, len(h.waiting)/2))
	}
	return false, nil
}

// oldLink is the index of a link below which there may be blocks from before a place; -1 if there is none.
func oldLink(links []link, before loc) int {
	for i := range links {
		if links[i].oldest < before {
			return i
		}
	}
	return -1
}
