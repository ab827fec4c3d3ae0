package frontier

// A victim is a segment that is being emptied, so that its room can be given back.
type victim struct {
	segment *segment
	offset  int64 // of the next block to be looked at
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

// empty looks at the victim's next block, and moves what its host has in the segment.
func (f *Frontier) empty(v *victim) (int64, error) {
	s := f.disk.segments
	if s.all[v.segment.id] != v.segment || v.offset >= v.segment.size {
		v.segment.stuck = true
		f.disk.victim = nil
		return 0, nil
	}
	body, err := s.body(newLoc(v.segment.id, v.offset))
	if err != nil {
		return 0, err
	}
	s.dec.b, s.dec.bad = body, false
	_, name := s.dec.uint(), s.dec.string()
	n := int64(len(body) + frameLen)
	if err := f.pull(name, v.segment.id); err != nil {
		return 0, err
	}
	v.offset += n
	return n, nil
}

// pull takes all that a host has in a segment out of it.
func (f *Frontier) pull(name string, segment uint32) error {
	h, cold := f.hosts[name], false
	if h == nil {
		id := f.disk.table.find(f.disk.table.identity(name))
		if id == 0 || f.disk.table.at(id).top == 0 {
			return nil
		}
		h, cold = f.revive(id, name), true
	}
	f.touch(h)
	err := f.pullBlocks(h, segment)
	if err == nil && cold {
		err = f.sendAway(h)
	}
	if err != nil || !cold {
		f.place(h)
	}
	return err
}

func (f *Frontier) pullBlocks(h *host, segment uint32) error {
	for {
		if h.top.segment() == segment {
			f.soil(h)
		}
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
