package extsort

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"

	"kumo/internal/base/vfs"
)

// Records is a sequence of records. Each is valid until the next; io.EOF marks the end.
type Records interface {
	Next() (key, value []byte, err error)
}

// A source is a sequence of records that must be closed.
type source interface {
	Records
	Close() error
}

// A cursor points to a record of a sorted sequence.
type cursor interface {
	advance() error                // returns io.EOF at the end
	record() (key, head []byte)    // head is the value's beginning
	value(*[]byte) ([]byte, error) // the whole value, possibly in the given buffer; may be called once per record
	close() error
}

// A memory iterates over the sorted records of a Sorter in memory.
type memory struct {
	sorter *Sorter
	items  []item
	at     int // index of the current record, plus one
}

var (
	_ source = (*memory)(nil)
	_ cursor = (*memory)(nil)
)

func (m *memory) Next() (key, value []byte, err error) {
	if err := m.advance(); err != nil {
		return nil, nil, err
	}
	key, value = m.sorter.record(&m.items[m.at-1])
	return key, value, nil
}

func (m *memory) Close() error { return nil }

func (m *memory) advance() error {
	if m.at == len(m.items) {
		return io.EOF
	}
	m.at++
	return nil
}

func (m *memory) record() (key, head []byte) {
	key, value := m.sorter.record(&m.items[m.at-1])
	return key, value[:min(len(value), comparedBytes)]
}

func (m *memory) value(*[]byte) ([]byte, error) {
	_, value := m.sorter.record(&m.items[m.at-1])
	return value, nil
}

func (m *memory) close() error { return nil }

// A Merge returns the records of several sorted sequences in order. It is not safe for concurrent use.
type Merge struct {
	disk  vfs.FS
	all   []cursor
	heap  []heapEntry // a min-heap by record
	begun bool
	buf   []byte   // holds a long value
	temps []string // files to remove on Close
}

// A heapEntry is a cursor with its current record.
type heapEntry struct {
	prefix    uint64
	key, head []byte
	cursor    cursor
	index     int // of the cursor in all
}

func (h *heapEntry) load() {
	h.key, h.head = h.cursor.record()
	h.prefix = prefix(h.key)
}

func less(a, b *heapEntry) bool {
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	if c := compare(a.key, a.head, b.key, b.head); c != 0 {
		return c < 0
	}
	return a.index < b.index
}

// Open merges one part of the runs of several sorters. If there are too many runs, it writes intermediate runs to
// cfg.Dir. It does not remove the given runs.
func Open(cfg Config, runs []Run, part int) (*Merge, error) {
	cfg = cfg.withDefaults()
	m := &Merge{disk: cfg.Disk}
	left := make([]Run, 0, len(runs)) // with this part only
	for i := range runs {
		if runs[i].Parts[part].Length > 0 {
			left = append(left, Run{Name: runs[i].Name, Parts: []Extent{runs[i].Parts[part]}})
		}
	}
	for n := 0; len(left) > fanIn; n++ {
		slices.SortStableFunc(left, func(a, b Run) int { return cmp.Compare(a.size(), b.size()) })
		few := left[:min(fanIn, len(left)-fanIn+1)]
		name := filepath.Join(cfg.Dir, fmt.Sprintf("part-%05d-%05d", part, n))
		run, err := writeRun(&cfg, name, 1, func(int) (source, error) {
			part := &Merge{disk: cfg.Disk}
			return part, part.open(few, 0)
		})
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		m.temps = append(m.temps, name)
		left = append(left[len(few):], run)
	}
	if err := m.open(left, 0); err != nil {
		return nil, err
	}
	return m, nil
}

// open adds one part of some runs. On error it closes the merge.
func (m *Merge) open(runs []Run, part int) error {
	for i := range runs {
		r, err := openRun(m.disk, &runs[i], part)
		if err != nil {
			return errors.Join(err, m.Close())
		}
		m.all = append(m.all, r)
	}
	return nil
}

// Next returns the next record, or io.EOF after the last. Both slices are valid until the next call.
func (m *Merge) Next() (key, value []byte, err error) {
	if err := m.advance(); err != nil {
		return nil, nil, err
	}
	value, err = m.heap[0].cursor.value(&m.buf)
	return m.heap[0].key, value, err
}

func (m *Merge) advance() error {
	switch {
	case !m.begun:
		m.begun = true
		for i, c := range m.all {
			h := heapEntry{cursor: c, index: i}
			if err := c.advance(); errors.Is(err, io.EOF) {
				continue
			} else if err != nil {
				return err
			}
			h.load()
			m.heap = append(m.heap, h)
		}
		for i := len(m.heap)/2 - 1; i >= 0; i-- {
			m.siftDown(i)
		}
	case len(m.heap) > 0:
		if cap(m.buf) > maxChunk {
			m.buf = nil // left by an unusually long value
		}
		h := &m.heap[0]
		if err := h.cursor.advance(); errors.Is(err, io.EOF) {
			last := len(m.heap) - 1
			m.heap[0] = m.heap[last]
			m.heap[last] = heapEntry{}
			m.heap = m.heap[:last]
		} else if err != nil {
			return err
		} else {
			h.load()
		}
		m.siftDown(0)
	}
	if len(m.heap) == 0 {
		return io.EOF
	}
	return nil
}

// siftDown restores the heap below entry i.
func (m *Merge) siftDown(i int) {
	for {
		least := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < len(m.heap) && less(&m.heap[child], &m.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

// Close closes the runs and removes the intermediate runs.
func (m *Merge) Close() (err error) {
	for _, c := range m.all {
		err = errors.Join(err, c.close())
	}
	for _, name := range m.temps {
		err = errors.Join(err, m.disk.Remove(name))
	}
	m.all, m.heap, m.temps, m.buf = nil, nil, nil, nil
	return err
}

// Groups iterates over a merge key by key. Key and values are valid until the next; values that the caller does not
// read are skipped. The iteration ends at the first error, which failed returns.
func (m *Merge) Groups() (groups iter.Seq2[[]byte, iter.Seq[[]byte]], failed func() error) {
	return Groups(m)
}

// Groups is like [Merge.Groups], for any records sorted by key.
func Groups(src Records) (groups iter.Seq2[[]byte, iter.Seq[[]byte]], failed func() error) {
	g := &grouping{src: src}
	return g.groups, func() error { return g.err }
}

// A grouping groups consecutive records by key.
type grouping struct {
	src        Records
	key        []byte
	next       []byte // the key of the record that was read ahead, with its value
	value      []byte
	have, done bool
	err        error
}

// read reads a record unless one was read ahead, and reports whether there is one.
func (g *grouping) read() bool {
	if g.have {
		return true
	}
	if g.done {
		return false
	}
	var err error
	if g.next, g.value, err = g.src.Next(); err != nil {
		g.done = true
		if !errors.Is(err, io.EOF) {
			g.err = err
		}
		return false
	}
	g.have = true
	return true
}

func (g *grouping) groups(yield func([]byte, iter.Seq[[]byte]) bool) {
	for g.read() {
		g.key = append(g.key[:0], g.next...)
		if !yield(g.key, g.values) {
			return
		}
		for range g.values { // skip the values that the caller did not read
		}
	}
}

func (g *grouping) values(yield func([]byte) bool) {
	for g.read() && string(g.next) == string(g.key) {
		g.have = false
		if !yield(g.value) {
			return
		}
	}
}
