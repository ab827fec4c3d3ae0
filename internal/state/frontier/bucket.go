package frontier

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// A bucket holds the fronts of cold hosts' queues whose times are near each other, in the order in which they came: an
// entry for a host that was put there, and one for each push to it since. So a push to a cold host reads nothing, and
// hosts come back by the thousand with a few long reads. Only its end is in memory.
//
// An entry is the number of a host's record, its own length, and a kind: a host has its name, what is known of the rest
// of its queue, and items; a push has only items, and moves have neither. An entry counts if the record names the
// bucket.
type bucket struct {
	id      uint32
	class   class
	from    int64           // of its slot, in ticks
	buf     []byte          // its end
	chunks  []chunk         // the rest, on disk
	size    int64           // of all, in bytes
	closed  bool            // it takes no more hosts
	crowded bool            // it is to be split
	lined   bool            // in the line of those to be written
	era     int             // of checkpoints, that it was made or saved in
	removed map[uint32]bool // of a copy: hosts that were taken out, the only ones that count
}

// A chunk is a part of a bucket on disk.
type chunk struct {
	at   loc
	size int64 // of its frame
}

// The kinds of entries.
const (
	putHost   = 'h'
	putRanked = 'r' // a host whose ranks change: first their generation, 0 if nobody knows, and how many moves were missed
	putItems  = 'i'
	putMoves  = 'm' // the age of the youngest item then; for each what it is known by, four bytes, and its place
)

// The kinds of frames in segments.
const (
	frameBlock = 'q'
	frameChunk = 'b'
)

// bucketFor returns the bucket that takes a host of a class with this time.
func (f *Frontier) bucketFor(c class, tick int64) *bucket {
	d := f.disk
	s := d.calendars[c].at(tick, d.tick(f.cfg.Now()))
	if n := len(s.buckets); n > 0 {
		if b := s.buckets[n-1]; !b.closed && b.size < d.bucketSize {
			return b
		}
	}
	d.lastBucket++
	b := &bucket{id: d.lastBucket, class: c, from: s.from, era: d.era}
	d.buckets[b.id] = b
	s.buckets = append(s.buckets, b)
	return b
}

// put adds an entry of a host to a bucket.
func (f *Frontier) put(b *bucket, id uint32, data []byte) {
	d := f.disk
	d.save(b)
	before := len(b.buf)
	b.buf = d.room.grow(b.buf, 2*binary.MaxVarintLen32+len(data))
	b.buf = binary.AppendUvarint(b.buf, uint64(id))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(data)))
	b.buf = append(b.buf, data...)
	b.size += int64(len(b.buf) - before)
	if !b.lined {
		b.lined = true
		d.line = append(d.line, b)
	}
}

// save lets a checkpoint being made have the bucket as it is.
func (d *virtualizer) save(b *bucket) {
	if d.isCut(b.era) {
		d.cut.saveBucket(b)
	}
}

// flush has the end of a bucket written.
func (d *virtualizer) flush(b *bucket) {
	if len(b.buf) == 0 {
		return
	}
	s := d.segments
	s.saving = d.isCut(b.era) // what it has is what it had at the cut
	defer func() { s.saving = false }()
	at, n := s.append(func(w *writer) {
		w.b = append(w.b, frameChunk)
		w.uint(uint64(b.id))
		w.uint(d.run)
		w.b = append(w.b, b.buf...)
	})
	d.room.free(b.buf)
	b.buf = nil
	b.chunks = append(b.chunks, chunk{at, n})
}

// isCut reports whether what is as old as an era is in a checkpoint being made that has not saved it yet.
func (d *virtualizer) isCut(era int) bool { return d.cut != nil && era < d.era }

// flushSome has ends of buckets written, those first that began first, until they take no more memory than they may.
func (d *virtualizer) flushSome() {
	for d.room.used > d.bufferLimit && len(d.line) > 0 {
		b := d.line[0]
		d.flush(b)
		b.lined = false
		d.line = d.line[1:]
	}
}

// drop forgets a bucket.
func (d *virtualizer) drop(b *bucket) {
	d.save(b)
	d.letGo(b.chunks)
	d.room.free(b.buf)
	b.buf, b.chunks = nil, nil
	delete(d.buckets, b.id)
}

// A part is what a bucket has of one host: an entry's kind and data.
type part struct {
	id   uint32
	old  bool   // of an earlier process: what that waited for is asked for again
	data []byte // the kind is its first byte
}

// parts finds all entries of a bucket that count, sorted by host, in their order. They hold until the next call, or the
// lock is given up.
func (f *Frontier) parts(b *bucket) ([]part, error) {
	d := f.disk
	d.parts, d.order = d.parts[:0], d.order[:0]
	var missing error
	for _, c := range b.chunks {
		frame, err := d.segments.frame(c.at, c.size)
		if err != nil {
			missing = err // all of them are read together
		} else if err := f.chunk(b, frame); err != nil {
			return nil, damaged(d.segments.name(c.at.segment()), c.at.offset(), err)
		}
	}
	if missing != nil {
		return nil, missing
	}
	if err := f.divide(b, b.buf, false); err != nil {
		return nil, err
	}
	slices.Sort(d.order)
	d.sorted = d.sorted[:0]
	for _, o := range d.order {
		d.sorted = append(d.sorted, d.parts[uint32(o)])
	}
	return d.sorted, nil
}

func (f *Frontier) chunk(b *bucket, frame []byte) error {
	r := &f.dec
	r.b, r.bad = frame, false
	if r.byte() != frameChunk || r.uint() != uint64(b.id) {
		return errBlock
	}
	run := r.uint()
	return f.divide(b, r.b, run != f.disk.run)
}

// counts reports whether a bucket's entries of a host count.
func (f *Frontier) counts(b *bucket, id uint32) bool {
	if b.removed != nil {
		return b.removed[id]
	}
	r := f.disk.table.at(id)
	return r.bucket == b.id && !r.is(isHot)
}

// divide appends the entries that count.
func (f *Frontier) divide(b *bucket, entries []byte, old bool) error {
	d, r := f.disk, &f.dec
	r.b, r.bad = entries, false
	for len(r.b) > 0 {
		id, data := r.uint(), r.bytes(r.uint())
		if r.bad || len(data) == 0 || id == 0 || id > uint64(d.table.n) {
			return fmt.Errorf("bucket %d: %w", b.id, errBlock)
		}
		if f.counts(b, uint32(id)) {
			d.order = append(d.order, id<<32|uint64(len(d.parts)))
			d.parts = append(d.parts, part{uint32(id), old, data})
		}
	}
	if r.bad {
		return fmt.Errorf("bucket %d: %w", b.id, errBlock)
	}
	return nil
}

// A coldHost is what a bucket has of a host.
type coldHost struct {
	name  string
	key   key    // of the first item in blocks
	rest  uint32 // how many are there
	items []entry
	gone  int // fetches of robots.txt that an earlier process waited for

	generation uint64 // of the ranks of items
	missed     uint32 // moves that may be of what is in blocks
	deepest    int32  // rank to which an item was moved
}

// sleeper decodes the parts of one host; its items are parts of those.
func (f *Frontier) sleeper(parts []part, items []entry) (coldHost, error) {
	s := coldHost{items: items}
	r := &f.dec
	f.moves = f.moves[:0]
	for i := range parts {
		p := &parts[i]
		r.b, r.bad = p.data, false
		kind := r.byte()
		if (kind == putHost || kind == putRanked) != (i == 0) {
			return s, errBlock
		}
		switch kind {
		case putRanked:
			s.generation, s.missed = r.uint()-1, uint32(r.uint())
			fallthrough
		case putHost:
			s.name = r.string()
			if s.rest = uint32(r.uint()); s.rest > 0 {
				s.key = r.key()
			}
		case putMoves:
			f.moves = r.moves(f.moves)
		}
		if p.old {
			s.generation = ofBefore
		}
		for len(r.b) > 0 {
			e := r.entry()
			if p.old && e.rank == robotsRank {
				s.gone++
				continue
			}
			s.items = append(s.items, e)
		}
		if r.bad {
			return s, errBlock
		}
	}
	if n := moveTo(s.items, f.moves, &s.deepest); s.rest > 0 {
		s.missed += uint32(n.missed)
	}
	return s, nil
}

// sameHost is how many of the parts are of the first one's host.
func sameHost(parts []part) int {
	n := 1
	for n < len(parts) && parts[n].id == parts[0].id {
		n++
	}
	return n
}

// room is the memory that ends of buckets take, in pieces that are used again.
type room struct {
	used, spare int64
	pieces      [26][][]byte // by the logarithm of their length
}

const leastPiece = 7 // 128 bytes

// grow returns a piece with what b has and room for more bytes.
func (r *room) grow(b []byte, more int) []byte {
	if len(b)+more <= cap(b) {
		return b
	}
	class := max(leastPiece, bits.Len(uint(max(len(b)+more, 2*cap(b))-1)))
	if class >= len(r.pieces) {
		class = len(r.pieces) - 1
	}
	var piece []byte
	if free := r.pieces[class]; len(free) > 0 && len(b)+more <= 1<<class {
		last := len(free) - 1
		piece, free[last] = free[last], nil
		r.pieces[class] = free[:last]
		r.spare -= int64(cap(piece))
	} else {
		piece = make([]byte, 0, max(1<<class, len(b)+more))
	}
	r.used += int64(cap(piece))
	piece = append(piece, b...)
	r.free(b)
	return piece
}

// free takes a piece back. A quarter as much as is in use is kept.
func (r *room) free(b []byte) {
	n := int64(cap(b))
	r.used -= n
	if class := bits.Len(uint(n)) - 1; n > 0 && n == 1<<class && class < len(r.pieces) && 4*(r.spare+n) <= r.used {
		r.spare += n
		r.pieces[class] = append(r.pieces[class], b[:0])
	}
}
