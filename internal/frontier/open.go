package frontier

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"time"
)

var (
	// ErrVersion is a checkpoint written by another version of kumo, or no checkpoint at all.
	ErrVersion = errors.New("not a checkpoint that this version of kumo reads")
	// ErrDamaged is a checkpoint that is not as it was written.
	ErrDamaged = errors.New("the checkpoint is damaged")
)

const maxSection = 256 << 20 // bytes: more is damage

// Open opens the frontier of Config.Dir as its last checkpoint has it, and returns that one's note; an empty frontier without a
// note if there is none. Each host owes its full delay from now. What was under way waits again; what was parked is not
// any more, and fetches of robots.txt are gone: the caller asks anew. Without a Dir the frontier is in memory.
func Open(cfg Config) (*Frontier, []byte, error) {
	f := New(cfg)
	if f.cfg.Dir == "" {
		return f, nil, nil
	}
	f.disk = newVirtualizer(f.cfg)
	note, err := f.load()
	if err != nil {
		return nil, nil, fmt.Errorf("open the frontier %s: %w", f.cfg.Dir, err)
	}
	return f, note, nil
}

// Close closes the frontier's files. What was not in a checkpoint is not kept.
func (f *Frontier) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.disk == nil {
		return nil
	}
	return f.disk.segments.close()
}

func (f *Frontier) load() ([]byte, error) {
	s := f.disk.segments
	if err := s.disk.MkdirAll(s.dir); err != nil {
		return nil, err
	}
	src, err := s.disk.Open(filepath.Join(s.dir, checkpointName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.clear()
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
	since  int64 // what a tick of the checkpoint is less than one of now
	strays []block
	note   []byte
	ended  bool
}

func (l *loader) read() error {
	magic := make([]byte, len(checkpointMagic))
	if _, err := io.ReadFull(l.src, magic); err != nil || string(magic) != checkpointMagic {
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
	if err := l.f.disk.segments.clear(); err != nil {
		return err
	}
	for i := range l.strays {
		l.stray(&l.strays[i])
	}
	return nil
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
	if _, err := io.ReadFull(l.src, l.body); err != nil || crc32.Checksum(l.body, castagnoli) != binary.LittleEndian.Uint32(head[5:]) {
		return 0, ErrDamaged
	}
	return head[0], nil
}

func (l *loader) take(kind byte) error {
	switch kind {
	case sectionBegin:
		return l.begin()
	case sectionRecords:
		for b := l.body; len(b) >= recordLen; b = b[recordLen:] {
			var r record
			if r.parse(b); !r.is(isHot) {
				l.record(&r)
			}
		}
		return nil
	case sectionGone:
		for b := l.body; len(b) >= len(goneKey{}); b = b[len(goneKey{}):] {
			l.f.gone[goneKey(b[:len(goneKey{})])]++
		}
		return nil
	case sectionHost:
		return l.host()
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

// record takes a host in. It owes its delay, and the rest of a longer wait, bounded as the clock may have been set. How often it has failed
// in a row is the last process's business: waits that double from run to run would soon be hours.
func (l *loader) record(r *record) {
	f, d := l.f, l.f.disk
	delay := max(f.cfg.Delay, time.Duration(r.delay)*time.Millisecond)
	s := unpack(r.state)
	rest := min(time.Duration(s.next-l.since)*time.Millisecond, f.cfg.MaxWait)
	s.next = d.tick(d.base.Add(max(delay, rest)))
	s.failures, s.throttles = 0, 0
	s.flags &^= isQueued | isParked | hasTurn
	if s.flags&isBacking != 0 {
		f.backing++
	}
	id := d.table.add(r.hi, r.lo)
	to := d.table.at(id)
	to.state, to.top, to.count, to.delay = s.pack(), r.top, r.count, r.delay
	f.known++
	f.waiting += int(r.count)
	if to.eligible() {
		d.eligible++
		d.enqueue(id)
	}
}

func (l *loader) host() error {
	if len(l.body) < recordLen {
		return ErrDamaged
	}
	var r record
	r.parse(l.body)
	l.record(&r)
	if len(l.body) == recordLen {
		return nil
	}
	dec := reader{}
	b, err := dec.parse(l.body[recordLen:])
	if err != nil {
		return ErrDamaged
	}
	l.strays = append(l.strays, b)
	return nil
}

// stray lets wait again what was under way.
func (l *loader) stray(b *block) {
	for _, it := range b.items {
		if it.Robots == "" {
			l.f.Restore(b.host, it)
		}
	}
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
	l.note = []byte(r.string())
	l.f.resumed = l.f.cfg.Now()
	s.kept = s.era
	s.era++
	if r.bad {
		return ErrDamaged
	}
	return nil
}
