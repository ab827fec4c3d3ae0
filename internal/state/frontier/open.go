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
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var (
	// ErrVersion is a checkpoint written by another version of kumo, or no checkpoint at all.
	ErrVersion = errors.New("not a checkpoint that this version of kumo reads")
	// ErrDamaged is a checkpoint that is not as it was written.
	ErrDamaged = errors.New("the checkpoint is damaged")
)

const checkpointFamily = "kumo frontier " // what all versions begin with

const maxSection = 256 << 20 // bytes: more is damage

// Open opens the frontier of Config.Dir as its last checkpoint has it, and returns that one's note; an empty frontier
// without a note if there is none. Each host owes its full delay from now. What was under way waits again; what was
// parked is not any more, and fetches of robots.txt are gone: the caller asks anew. Without a Dir the frontier is in
// memory.
func Open(cfg Config) (*Frontier, []byte, error) {
	f := New(cfg)
	if f.cfg.Dir == "" {
		return f, nil, nil
	}
	f.disk = newVirtualizer(f.cfg)
	note, err := f.reopen()
	if err != nil {
		return nil, nil, fmt.Errorf("open the frontier %s: %w", f.cfg.Dir, err)
	}
	return f, note, nil
}

// Close closes the frontier's files. What was not in a checkpoint is not kept.
func (f *Frontier) Close() error {
	if f.disk == nil {
		return nil
	}
	f.takeDisk()
	defer f.giveDisk()
	return f.closeFiles()
}

func (f *Frontier) reopen() ([]byte, error) {
	s := f.disk.segments
	if err := s.disk.MkdirAll(s.dir); err != nil {
		return nil, err
	}
	src, err := s.disk.Open(filepath.Join(s.dir, checkpointName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.pass() // if the checkpoint was lost, they are needed to mend that
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }() // it was only read
	l := loader{f: f, src: bufio.NewReaderSize(src, writeBuffer)}
	err = l.read()
	return l.note, err
}

// A loader reads a checkpoint.
type loader struct {
	f      *Frontier
	src    *bufio.Reader
	body   []byte
	since  int64 // what a tick of the checkpoint is more than one of now
	strays []inFlightAtCut
	sleep  []coldBucket
	parked []uint32 // hosts that were
	note   []byte
	ended  bool
}

func (l *loader) read() error {
	magic := make([]byte, len(checkpointMagic))
	switch _, err := io.ReadFull(l.src, magic); {
	case err == nil && strings.HasPrefix(string(magic), checkpointFamily) && string(magic) < checkpointMagic:
		return fmt.Errorf("%w: an older kumo wrote it; begin again with --fresh, or in another folder", ErrVersion)
	case err != nil || string(magic) != checkpointMagic:
		return ErrVersion
	}
	for !l.ended {
		kind, err := l.section()
		if err == nil {
			err = l.take(kind)
		}
		if err != nil {
			return err
		}
	}
	if err := errors.Join(l.f.disk.segments.pass(), l.f.disk.segments.clear()); err != nil {
		return err
	}
	return l.wake()
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

func (l *loader) take(kind byte) error {
	switch kind {
	case sectionBegin:
		return l.begin()
	case sectionRecords:
		return l.records()
	case sectionGone:
		for b := l.body; len(b) >= len(goneKey{}); b = b[len(goneKey{}):] {
			l.f.gone[goneKey(b[:len(goneKey{})])]++
			l.f.going++
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
	r := reader{b: l.body}
	l.f.disk.run = r.uint() + 1
	l.since = l.f.disk.base.UnixMilli() - r.int()
	if r.bad {
		return ErrDamaged
	}
	return nil
}

// records takes records in under the numbers that buckets know them by.
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
			l.record(id, &r)
		}
		l.f.disk.table.set(id, &r)
	}
	return nil
}

// record takes a cold host in. It owes its delay, and the rest of a longer wait, bounded as the clock may have been
// set. How often it has failed in a row is the last process's business: waits that double from run to run would soon be
// hours.
func (l *loader) record(id uint32, r *record) {
	f, d := l.f, l.f.disk
	s := unpack(r.state)
	s.next = d.tick(l.next(r))
	s.failures, s.throttles = 0, 0
	s.flags &^= isParked | hasTurn
	if s.flags&isBacking != 0 {
		f.backing++
	}
	r.state = s.pack()
	f.known++
	f.waiting += int(r.count)
	if r.eligible() {
		d.eligible++
	}
	if r.count > 0 && r.bucket == 0 {
		l.parked = append(l.parked, id)
	}
}

// next is when a host may be asked.
func (l *loader) next(r *record) time.Time {
	f := l.f
	rest := min(time.Duration(r.next()-l.since)*time.Millisecond, f.cfg.MaxWait)
	return f.disk.base.Add(max(f.cfg.Delay, r.requestedDelay(), rest))
}

// An inFlightAtCut is what was under way at a host.
type inFlightAtCut struct {
	host  string
	items []entry
}

// A coldBucket is a bucket that is not in the calendar yet.
type coldBucket struct {
	*bucket
	from int64
}

// host takes a host in that was in memory, and is again.
func (l *loader) host() error {
	f := l.f
	if len(l.body) < recordLen {
		return ErrDamaged
	}
	var rec record
	rec.parse(l.body)
	r := reader{b: bytes.Clone(l.body[recordLen:])}
	h := f.newHost(r.string())
	h.links = append(h.links, r.links()...)
	for _, e := range r.entries(nil) {
		if e.rank != robotsRank { // it is asked for anew
			h.waiting.push(e)
			f.disk.charge(h, e.cost())
		}
	}
	if flying := r.entries(nil); len(flying) > 0 {
		l.strays = append(l.strays, inFlightAtCut{h.key, flying})
	}
	if r.bad || len(r.b) > 0 {
		return ErrDamaged
	}
	if h.ranks != nil {
		h.ranks.generation = ofBefore
	}
	s := unpack(rec.state)
	h.next, h.delay, h.away, h.deepest = l.next(&rec), rec.requestedDelay(), rec.away(), s.deepest
	if h.own.HasDelay {
		h.next = latest(h.next, f.disk.base.Add(h.own.Delay))
	}
	h.ended = h.next.Add(-f.delay(h))
	h.doubtful = s.flags&isDoubtful != 0
	f.known++
	f.waiting += int(h.count())
	f.setBacking(h, s.flags&isBacking != 0)
	f.place(h)
	return nil
}

func (l *loader) bucket() error {
	d := l.f.disk
	r := reader{b: l.body}
	b := &bucket{id: uint32(r.uint()), class: class(r.uint()), era: d.era, closed: true}
	from := r.int()
	b.chunks = make([]chunk, r.count())
	for i := range b.chunks {
		b.chunks[i] = chunk{loc(r.uint()), int64(r.uint())}
		b.size += b.chunks[i].size
	}
	if r.bad || b.class > suspect {
		return ErrDamaged
	}
	d.buckets[b.id] = b
	d.lastBucket = max(d.lastBucket, b.id)
	// None of its hosts is due before: see next.
	wait := min(time.Duration(from-l.since)*time.Millisecond, l.f.cfg.MaxWait)
	l.sleep = append(l.sleep, coldBucket{b, d.tick(d.base.Add(max(l.f.cfg.Delay, wait)))})
	return nil
}

// wake lets all wait for its time: buckets, what was parked, what was under way.
func (l *loader) wake() error {
	f, d := l.f, l.f.disk
	for _, h := range f.hosts {
		h.id = d.table.find(d.table.identity(h.key))
	}
	slices.SortStableFunc(l.sleep, func(a, b coldBucket) int { return cmp.Compare(a.from, b.from) })
	for _, b := range l.sleep {
		b.bucket.from = b.from
		d.calendars[b.class].restore(b.bucket, b.from)
	}
	for _, id := range l.parked {
		if err := l.unpark(id); err != nil {
			return err
		}
	}
	for _, s := range l.strays {
		for i := range s.items {
			it, err := f.dec.item(s.host, &s.items[i])
			if err != nil {
				return err
			}
			if it.Late = false; it.Robots == "" { // it goes where it was
				f.Restore(s.host, it)
			}
		}
	}
	return nil
}

// unpark brings a host into memory that was parked. Its name is in its queue.
func (l *loader) unpark(id uint32) error {
	f := l.f
	f.mu.Lock()
	err := f.paged(func() error {
		b, err := f.block(f.disk.table.at(id).top)
		if err == nil {
			f.place(f.loadRecord(id, b.host, link{}))
			f.shrink()
		}
		return err
	})
	f.mu.Unlock()
	f.Room(context.Background())
	return err
}

func (l *loader) end() error {
	s := l.f.disk.segments
	r := reader{b: l.body}
	l.f.seq = r.uint()
	for range r.count() {
		seg := &segment{id: uint32(r.uint()), size: int64(r.uint()), live: int64(r.uint()), era: s.era}
		size, err := s.disk.Size(s.name(seg.id))
		if err != nil {
			return err
		}
		if size < seg.size {
			return fmt.Errorf("%s is %d bytes long, the checkpoint wants %d: %w", s.name(seg.id), size, seg.size, ErrDamaged)
		}
		s.all[seg.id] = seg
		s.last = max(s.last, seg.id)
		s.size += seg.size
		s.live += seg.live
	}
	l.f.mostLift = int8(r.int())
	l.note = []byte(r.string())
	l.f.resumed = l.f.cfg.Now()
	s.kept = s.era
	s.era++
	if r.bad {
		return ErrDamaged
	}
	return nil
}
