package frontier

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

var (
	// ErrVersion reports a checkpoint of another version of kumo, or a file that is no checkpoint.
	ErrVersion = errors.New("not a checkpoint of a version that this kumo reads")
	// ErrDamaged reports a damaged checkpoint.
	ErrDamaged = errors.New("the checkpoint is damaged")
)

const checkpointFamily = "kumo frontier " // common prefix of all versions

const maxSection = 256 << 20 // bytes; a longer section is damaged

// Open opens the frontier in Config.Dir from its last checkpoint, and returns the checkpoint's note. If there is no
// checkpoint, the frontier is empty and the note is nil. Each host waits its full delay from now. Items of visits that
// were under way are pending again. No host is parked, and robots.txt fetches are dropped: the caller must request them
// again. Without a Dir the frontier is in memory.
func Open(cfg Config) (*Frontier, []byte, error) {
	f := newFrontier(cfg.withDefaults())
	if f.disk == nil {
		return f, nil, nil
	}
	l := loader{disk: f.disk, suppressed: f.suppressed}
	if err := l.load(f); err != nil {
		return nil, nil, fmt.Errorf("open the frontier %s: %w", f.cfg.Dir, err)
	}
	return f, l.note, nil
}

// A loader reads a checkpoint into the parts of a frontier that is not in use yet.
type loader struct {
	disk       *virtualizer
	suppressed *suppression
	src        *bufio.Reader
	body       []byte
	offset     int64 // from the checkpoint's ticks to the current ones
	inFlight   []inFlightAtCut
	buckets    []coldBucket
	parked     []uint32 // records of parked hosts
	note       []byte
	ended      bool
}

// inFlightAtCut holds a host's items whose visits were under way at the cut.
type inFlightAtCut struct {
	host  string
	items []entry
}

// A coldBucket is a bucket that is not in the calendar yet.
type coldBucket struct {
	*bucket
	from int64
}

// load loads the checkpoint, if there is one.
func (l *loader) load(f *Frontier) error {
	s := l.disk.segments
	if err := s.folder.disk.MkdirAll(s.folder.dir); err != nil {
		return err
	}
	src, err := s.folder.disk.Open(s.folder.path(checkpointName))
	if errors.Is(err, fs.ErrNotExist) {
		return s.skipNumbers() // if the checkpoint was lost, a repair needs the files
	}
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // read only
	l.src = bufio.NewReaderSize(src, writeBuffer)
	if err := l.read(); err != nil {
		return err
	}
	return l.finish(f)
}

// read reads all sections.
func (l *loader) read() error {
	magic := make([]byte, len(checkpointMagic))
	switch _, err := io.ReadFull(l.src, magic); {
	case err == nil && strings.HasPrefix(string(magic), checkpointFamily) && string(magic) < checkpointMagic:
		return fmt.Errorf("%w: it was written by an older kumo; start over with --fresh, or in another folder", ErrVersion)
	case err != nil || string(magic) != checkpointMagic:
		return ErrVersion
	}
	for !l.ended {
		kind, err := l.section()
		if err == nil {
			err = l.apply(kind)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(l.disk.segments.skipNumbers(), l.disk.segments.removeUnknown())
}

func (l *loader) section() (byte, error) {
	var head [9]byte
	if _, err := io.ReadFull(l.src, head[:]); err != nil {
		return 0, ErrDamaged
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > maxSection {
		return 0, ErrDamaged
	}
	if cap(l.body) < int(n) {
		l.body = make([]byte, n)
	}
	l.body = l.body[:n]
	if _, err := io.ReadFull(l.src, l.body); err != nil || sectionSum(head[0],
		l.body) != binary.LittleEndian.Uint32(head[5:]) {
		return 0, ErrDamaged
	}
	return head[0], nil
}

func (l *loader) apply(kind byte) error {
	switch kind {
	case sectionBegin:
		return l.begin()
	case sectionRecords:
		return l.records()
	case sectionSuppressed:
		for b := l.body; len(b) >= len(urlHash{}); b = b[len(urlHash{}):] {
			l.suppressed.add(urlHash(b[:len(urlHash{})]))
		}
		return nil
	case sectionHost:
		return l.host()
	case sectionBucket:
		return l.bucket()
	case sectionEnd:
		l.ended = true
		return l.end()
	}
	return ErrVersion
}

func (l *loader) begin() error {
	r := readerOf(l.body)
	run := r.Uint() + 1
	l.disk.buckets.run, l.disk.reader.run = run, run
	l.offset = l.disk.cold.base.UnixMilli() - r.Int()
	if r.Bad {
		return ErrDamaged
	}
	return nil
}

// records restores records with the same numbers, which the buckets refer to.
func (l *loader) records() error {
	if len(l.body) < 4 {
		return ErrDamaged
	}
	id := binary.LittleEndian.Uint32(l.body)
	if id == 0 || uint64(id)+uint64(len(l.body)/recordLen) > 1<<32-1 || (id-1)%chunkLen != 0 {
		return ErrDamaged
	}
	for b := l.body[4:]; len(b) >= recordLen; b, id = b[recordLen:], id+1 {
		var r record
		r.parse(b)
		if !r.is(isHot) {
			l.resetNext(&r)
			if r.count > 0 && r.bucket == 0 {
				l.parked = append(l.parked, id)
			}
		}
		l.disk.cold.restore(id, &r)
	}
	return nil
}

// resetNext sets a cold host's next time: its delay, or the rest of a longer wait, bounded because the system clock may
// have changed. Its failures in a row are forgotten, because waits that double from run to run would soon be hours.
func (l *loader) resetNext(r *record) {
	s := unpack(r.state)
	s.next = l.disk.cold.tick(l.next(r))
	s.failures, s.throttles = 0, 0
	s.flags &^= isParked | hasTurn
	r.state = s.pack()
}

// next returns the time when a host may be visited.
func (l *loader) next(r *record) time.Time {
	p := l.disk.polite
	rest := min(time.Duration(r.next()-l.offset)*time.Millisecond, p.maxWait)
	return l.disk.cold.base.Add(max(p.delay, r.requestedDelay(), rest))
}

// host restores a host in memory.
func (l *loader) host() error {
	if len(l.body) < recordLen {
		return ErrDamaged
	}
	var rec record
	rec.parse(l.body)
	r := readerOf(bytes.Clone(l.body[recordLen:]))
	bench := l.disk.bench
	h := bench.create(r.String(), 0)
	h.queue.links = append(h.queue.links, r.links()...)
	for _, e := range r.entries(nil) {
		if e.rank != robotsRank { // the caller requests it again
			h.queue.front.push(e)
			l.disk.residents.charge(&h.queue, e.cost())
		}
	}
	if flying := r.entries(nil); len(flying) > 0 {
		l.inFlight = append(l.inFlight, inFlightAtCut{h.key, flying})
	}
	if r.Bad || len(r.Rest) > 0 {
		return ErrDamaged
	}
	if h.queue.ranks != nil {
		h.queue.ranks.generation = generationBefore
	}
	s, c := unpack(rec.state), &h.clock
	c.next, c.requestedDelay, h.away, h.queue.deepest = l.next(&rec), rec.requestedDelay(), rec.away(), s.deepest
	if c.own.HasDelay {
		c.postpone(l.disk.cold.base.Add(c.own.Delay))
	}
	c.lastEnd = c.next.Add(-l.disk.polite.delayOf(c))
	c.suspect = s.flags&isSuspect != 0
	bench.pending += int(h.queue.count())
	bench.setBackingOff(h, s.flags&isBacking != 0)
	bench.place(h)
	return nil
}

func (l *loader) bucket() error {
	r := readerOf(l.body)
	b := &bucket{id: uint32(r.Uint()), class: class(r.Uint())}
	from := r.Int()
	b.chunks = make([]chunk, r.Count())
	for i := range b.chunks {
		b.chunks[i] = chunk{loc(r.Uint()), int64(r.Uint())}
		b.size += b.chunks[i].size
	}
	if r.Bad || b.class > suspect {
		return ErrDamaged
	}
	l.disk.buckets.restore(b)
	// No host of the bucket is due earlier: see next.
	p := l.disk.polite
	wait := min(time.Duration(from-l.offset)*time.Millisecond, p.maxWait)
	l.buckets = append(l.buckets, coldBucket{b, l.disk.cold.tick(l.disk.cold.base.Add(max(p.delay, wait)))})
	return nil
}

func (l *loader) end() error {
	s := l.disk.segments
	r := readerOf(l.body)
	l.disk.ranking.age = r.Uint()
	for range r.Count() {
		seg := &segment{id: uint32(r.Uint()), size: int64(r.Uint()), live: int64(r.Uint()), era: s.retained.era}
		name := s.folder.segment(seg.id)
		size, err := s.folder.disk.Size(name)
		if err != nil {
			return err
		}
		if size < seg.size {
			return fmt.Errorf("%s has %d bytes, the checkpoint expects %d: %w", name, size, seg.size, ErrDamaged)
		}
		s.restore(seg)
	}
	l.disk.ranking.mostLift = int8(r.Int())
	l.note = []byte(r.String())
	l.disk.polite.resumed = l.disk.now()
	s.retained.reopen()
	if r.Bad {
		return ErrDamaged
	}
	return nil
}

// finish sets the times of all hosts: those in buckets, those that were parked, and those with visits under way.
func (l *loader) finish(f *Frontier) error {
	for _, h := range l.disk.bench.hosts {
		l.disk.bench.setRecord(h, l.disk.cold.find(h.key))
	}
	slices.SortStableFunc(l.buckets, func(a, b coldBucket) int { return cmp.Compare(a.from, b.from) })
	for _, b := range l.buckets {
		b.bucket.from = b.from
		l.disk.buckets.calendars[b.class].restore(b.bucket, b.from)
	}
	for _, id := range l.parked {
		if err := l.loadParked(f, id); err != nil {
			return err
		}
	}
	for _, s := range l.inFlight {
		for i := range s.items {
			it, err := s.items[i].item(s.host)
			if err != nil {
				return err
			}
			if it.QueueLast = false; it.Robots == "" { // it keeps its place
				f.Restore(s.host, it)
			}
		}
	}
	return nil
}

// loadParked loads a host that was parked. Its blocks contain its name.
func (l *loader) loadParked(f *Frontier, id uint32) error {
	f.mu.Lock()
	pages := l.disk.queues.pages
	err := pages.run(func() error {
		b, err := pages.block(l.disk.cold.table.at(id).top)
		if err == nil {
			l.disk.bench.place(l.disk.loadRecord(id, b.host, link{}))
			l.disk.shrink()
		}
		return err
	})
	f.mu.Unlock()
	f.WaitForRoom(context.Background())
	return err
}
