package frontier

import "encoding/binary"

// A bucket contains the fronts of the queues of cold hosts whose next times are near each other. Its entries are in the
// order of their arrival: one for a host placed there, and one for each later push. So a push to a cold host reads
// nothing, and a few long reads load thousands of hosts. Only the end of a bucket is in memory.
//
// An entry has the number of the host's record, its own length, and a kind. A host entry has the name, the first key
// and the length of the rest of the queue, and items. A push entry has items only, a move entry has moves only. An
// entry is live if the host's record names the bucket.
type bucket struct {
	id       uint32
	class    class
	from     int64           // start of its slot, in ticks
	buf      []byte          // the end of the bucket
	chunks   []chunk         // the rest of the bucket, on disk
	size     int64           // total bytes
	closed   bool            // accepts no more hosts
	overfull bool            // must be split
	dirty    bool            // has data in buf that must be written
	era      int             // checkpoint era in which it was created or last saved
	removed  map[uint32]bool // in a copy: the removed hosts, the only live ones of the copy
}

// A chunk is a frame: a part of a bucket, or a block.
type chunk struct {
	at   loc
	size int64 // size of the frame
}

// The kinds of entries.
const (
	putHost   = 'h'
	putRanked = 'r' // a host whose ranks change; first the generation plus 1 and the number of missed moves
	putItems  = 'i'
	// the age of the youngest item at that time; for each move the number of its URL (4 bytes) and the place
	putMoves = 'm'
)

// The kinds of frames in segments.
const (
	frameBlock = 'q'
	frameChunk = 'b'
)

// buckets holds the buckets of cold hosts, in a calendar for each of two classes, and writes to them. The frontier's
// lock guards it.
type buckets struct {
	ticks
	calendars [2]calendar // sound hosts, suspects
	byID      map[uint32]*bucket
	segments  *segments
	saver     *saver
	last      uint32     // number of the last bucket created
	full      int64      // size in bytes at which a bucket accepts no more hosts
	dirty     []*bucket  // buckets with an end in memory, in the order in which they are written
	pool      bufferPool // buffers of these ends
	maxDirty  int64      // limit of the bytes in these buffers
	overfull  []*bucket  // buckets to split, because they received many pushes
	ranked    bool       // whether ranks change
	run       uint64     // number of this process
	enc       writer
}

func newBuckets(memory int64, t ticks, s *segments, v *saver, ranked bool) *buckets {
	return &buckets{ticks: t, byID: make(map[uint32]*bucket), segments: s, saver: v,
		full: min(max(memory/128, 2<<10), 1<<20), maxDirty: max(memory/8, 2<<10), ranked: ranked}
}

func coldClass(isSuspect bool) class {
	if isSuspect {
		return suspect
	}
	return sound
}

// place adds a host to the bucket for its next time.
func (b *buckets) place(id uint32, r *record, s *coldHost, now int64) {
	w := &b.enc
	if !b.ranked {
		w.b = append(w.b[:0], putHost)
	} else {
		w.b = append(w.b[:0], putRanked)
		w.uint(s.generation + 1)
		w.uint(uint64(s.missedMoves))
	}
	w.string(s.name)
	if w.uint(uint64(s.rest)); s.rest > 0 {
		w.key(s.key)
	}
	for i := range s.items {
		w.entry(&s.items[i])
	}
	to := b.at(r, now)
	r.bucket = to.id
	b.put(to, id, w.b)
}

// move copies the entries of a host to the bucket for its next time.
func (b *buckets) move(id uint32, r *record, parts []part, now int64) {
	to := b.at(r, now)
	r.bucket = to.id
	for i := range parts {
		b.put(to, id, parts[i].data)
	}
}

// at returns the bucket that accepts a host.
func (b *buckets) at(r *record, now int64) *bucket {
	c := coldClass(r.is(isSuspect))
	s := b.calendars[c].at(r.next(), now)
	if n := len(s.buckets); n > 0 {
		if to := s.buckets[n-1]; !to.closed && to.size < b.full {
			return to
		}
	}
	b.last++
	to := &bucket{id: b.last, class: c, from: s.from, era: b.saver.era}
	b.byID[to.id] = to
	s.buckets = append(s.buckets, to)
	return to
}

// add adds an entry to the bucket of a host.
func (b *buckets) add(id uint32, r *record, data []byte) {
	to := b.byID[r.bucket]
	b.put(to, id, data)
	if to.size > 4*b.full && !to.overfull { // its hosts need several buckets, or blocks
		to.overfull = true
		b.overfull = append(b.overfull, to)
	}
}

func (b *buckets) put(to *bucket, id uint32, data []byte) {
	b.saver.saveBucket(to)
	before := len(to.buf)
	to.buf = b.pool.grow(to.buf, 2*binary.MaxVarintLen32+len(data))
	to.buf = binary.AppendUvarint(to.buf, uint64(id))
	to.buf = binary.AppendUvarint(to.buf, uint64(len(data)))
	to.buf = append(to.buf, data...)
	to.size += int64(len(to.buf) - before)
	if !to.dirty {
		to.dirty = true
		b.dirty = append(b.dirty, to)
	}
}

// flush appends the end of a bucket to a segment.
func (b *buckets) flush(from *bucket) {
	if len(from.buf) == 0 {
		return
	}
	retained := &b.segments.retained
	retained.atCut = b.saver.needsSave(from.era) // these are the contents of the bucket at the cut
	defer func() { retained.atCut = false }()
	at, n := b.segments.append(func(w *writer) {
		w.b = append(w.b, frameChunk)
		w.uint(uint64(from.id))
		w.uint(b.run)
		w.b = append(w.b, from.buf...)
	})
	b.pool.free(from.buf)
	from.buf = nil
	from.chunks = append(from.chunks, chunk{at, n})
}

// flushSome flushes bucket ends, the oldest first, until they are within the limit of memory.
func (b *buckets) flushSome() {
	for b.pool.used > b.maxDirty && len(b.dirty) > 0 {
		first := b.dirty[0]
		b.flush(first)
		first.dirty = false
		b.dirty = b.dirty[1:]
	}
}

// drop removes a bucket.
func (b *buckets) drop(gone *bucket) {
	b.saver.saveBucket(gone)
	b.segments.release(gone.chunks)
	b.pool.free(gone.buf)
	gone.buf, gone.chunks = nil, nil
	delete(b.byID, gone.id)
}

// restore adds a bucket from a checkpoint. The bucket accepts no more hosts.
func (b *buckets) restore(old *bucket) {
	old.era, old.closed = b.saver.era, true
	b.byID[old.id] = old
	b.last = max(b.last, old.id)
}

// moveChunk copies a chunk in use to the current segment.
func (b *buckets) moveChunk(id uint32, at loc, frame []byte) {
	of := b.byID[id]
	if of == nil {
		return
	}
	for i := range of.chunks {
		if of.chunks[i].at != at {
			continue
		}
		b.saver.saveBucket(of)
		to, n := b.segments.append(func(w *writer) { w.b = append(w.b, frame...) })
		of.chunks[i] = chunk{to, n}
		b.segments.count(at, -n)
		return
	}
}

// copy returns a copy of a bucket, in which only removed hosts are live. It pins the segments.
func (b *buckets) copy(of *bucket) *bucket {
	b.segments.retained.pin()
	return &bucket{id: of.id, removed: map[uint32]bool{}, size: of.size,
		buf: append([]byte(nil), of.buf...), chunks: append([]chunk(nil), of.chunks...)}
}
