package frontier

import (
	"fmt"
	"slices"
)

// A bucketReader reads the hosts in buckets. Its results are valid until the next call, or until the lock is released.
// The frontier's lock guards it.
type bucketReader struct {
	pages *pager
	table *table
	run   uint64 // number of this process
	dec   reader

	parts  []part // buffers for reuse
	sorted []part
	order  []uint64
	moves  []pendingMove
}

// A part is an entry of a bucket.
type part struct {
	id   uint32 // number of the host's record
	old  bool   // written by an earlier process, whose robots.txt fetches are void
	data []byte // the first byte is the kind
}

// hosts calls do with the entries of each host of a bucket, in order.
func (r *bucketReader) hosts(b *bucket, do func(parts []part) error) error {
	parts, err := r.read(b)
	if err != nil {
		return err
	}
	return eachHost(parts, do)
}

func eachHost(parts []part, do func(parts []part) error) (err error) {
	for len(parts) > 0 && err == nil {
		n := 1
		for n < len(parts) && parts[n].id == parts[0].id {
			n++
		}
		err = do(parts[:n])
		parts = parts[n:]
	}
	return err
}

// read returns all live entries of a bucket, sorted by host, then in order.
func (r *bucketReader) read(b *bucket) ([]part, error) {
	r.parts, r.order = r.parts[:0], r.order[:0]
	var missing error
	for _, c := range b.chunks {
		frame, err := r.pages.frame(c.at, c.size)
		if err != nil {
			missing = err // keep going: all missing frames are read together
		} else if err := r.chunk(b, frame); err != nil {
			return nil, r.pages.damaged(c.at, err)
		}
	}
	if missing != nil {
		return nil, missing
	}
	if err := r.parseEntries(b, b.buf, false); err != nil {
		return nil, err
	}
	slices.Sort(r.order)
	r.sorted = r.sorted[:0]
	for _, o := range r.order {
		r.sorted = append(r.sorted, r.parts[uint32(o)])
	}
	return r.sorted, nil
}

func (r *bucketReader) chunk(b *bucket, frame []byte) error {
	d := &r.dec
	d.Rest, d.Bad = frame, false
	if d.Byte() != frameChunk || d.Uint() != uint64(b.id) {
		return errBlock
	}
	run := d.Uint()
	return r.parseEntries(b, d.Rest, run != r.run)
}

// isLive reports whether a bucket's entries of a host are live.
func (r *bucketReader) isLive(b *bucket, id uint32) bool {
	if b.removed != nil {
		return b.removed[id]
	}
	rec := r.table.at(id)
	return rec.bucket == b.id && !rec.is(isHot)
}

// parseEntries appends the live entries.
func (r *bucketReader) parseEntries(b *bucket, entries []byte, old bool) error {
	d := &r.dec
	d.Rest, d.Bad = entries, false
	for len(d.Rest) > 0 {
		id, data := d.Uint(), d.Bytes()
		if d.Bad || len(data) == 0 || id == 0 || id > uint64(r.table.n) {
			return fmt.Errorf("bucket %d: %w", b.id, errBlock)
		}
		if r.isLive(b, uint32(id)) {
			r.order = append(r.order, id<<32|uint64(len(r.parts)))
			r.parts = append(r.parts, part{uint32(id), old, data})
		}
	}
	if d.Bad {
		return fmt.Errorf("bucket %d: %w", b.id, errBlock)
	}
	return nil
}

// A coldHost is a host decoded from its bucket.
type coldHost struct {
	name        string
	key         key    // key of the first item in blocks
	rest        uint32 // number of items in blocks
	items       []entry
	staleRobots int // robots.txt fetches of an earlier process, which are not in items

	generation  uint64 // generation of the ranks of items
	missedMoves uint32 // moves that may apply to items in blocks
	deepest     int32  // deepest rank to which an item was moved
}

// host decodes the entries of one host. It appends its items to items; they share the bytes of the entries.
func (r *bucketReader) host(parts []part, items []entry) (coldHost, error) {
	s := coldHost{items: items}
	d := &r.dec
	r.moves = r.moves[:0]
	for i := range parts {
		p := &parts[i]
		d.Rest, d.Bad = p.data, false
		kind := d.Byte()
		if (kind == putHost || kind == putRanked) != (i == 0) {
			return s, errBlock
		}
		switch kind {
		case putRanked:
			s.generation, s.missedMoves = d.Uint()-1, uint32(d.Uint())
			fallthrough
		case putHost:
			s.name = d.String()
			if s.rest = uint32(d.Uint()); s.rest > 0 {
				s.key = d.key()
			}
		case putMoves:
			r.moves = d.moves(r.moves)
		}
		if p.old {
			s.generation = generationBefore
		}
		for len(d.Rest) > 0 {
			e := d.entry()
			if p.old && e.rank == robotsRank {
				s.staleRobots++
				continue
			}
			s.items = append(s.items, e)
		}
		if d.Bad {
			return s, errBlock
		}
	}
	if n := moveTo(s.items, r.moves, &s.deepest); s.rest > 0 {
		s.missedMoves += uint32(n.missed)
	}
	return s, nil
}

// find decodes one host of a bucket.
func (r *bucketReader) find(b *bucket, id uint32) (s coldHost, err error) {
	found := false
	err = r.hosts(b, func(parts []part) error {
		if found || parts[0].id != id {
			return nil
		}
		found = true
		s, err = r.host(parts, nil)
		return err
	})
	if err == nil && !found {
		err = errBlock
	}
	return s, err
}
