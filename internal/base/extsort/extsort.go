// Package extsort sorts more records than fit into memory, by an external merge sort.
//
// A record is a key and a value, both arbitrary bytes. A [Sorter] collects records in memory. When its memory budget is
// used up, it sorts the records and writes them to disk as a run. The result is a merge of the runs; at most 64 runs
// are read at once.
//
// Records belong to partitions, numbered from 0. A run stores each partition's records together. So one partition can
// be merged by itself from the runs of many sorters ([Open]), as in the shuffle of MapReduce.
//
// Memory is bounded by the budget and about three times the largest record. A merge uses some 15 MiB and the largest
// record. It holds only the beginning of a long value until that value is next in order.
package extsort

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"kumo/internal/base/vfs"
)

// A Config configures a Sorter.
type Config struct {
	Disk   vfs.FS // default vfs.OS
	Dir    string // a folder for this sorter only, created with the first run; the caller removes it
	Memory int    // bytes of records in memory; default 128 MiB
	Parts  int    // default 1

	// Combine, if not nil, reduces the values of a key before they are written. It may be called any number of times
	// for a key, also with values that it emitted before.
	Combine Combine
}

// Combine emits values that replace the values of a key. Each value is valid until the next.
type Combine func(key []byte, values iter.Seq[[]byte], emit func(value []byte) error) error

const (
	defaultMemory = 128 << 20
	fanIn         = 64       // runs merged at once
	maxChunk      = 1 << 20  // bytes
	comparedBytes = 64 << 10 // bytes of a value that are compared
	itemSize      = 32
	maxRecord     = 1 << 31 // bytes of a key, and of a value; exclusive
)

func (cfg Config) withDefaults() Config {
	if cfg.Disk == nil {
		cfg.Disk = vfs.OS
	}
	cfg.Memory = cmp.Or(cfg.Memory, defaultMemory)
	cfg.Parts = max(cfg.Parts, 1)
	return cfg
}

// A Sorter sorts records. It is not safe for concurrent use.
type Sorter struct {
	cfg    Config
	items  []item
	chunks [][]byte // of chunk bytes each; reused after a spill
	chunk  int
	fill   int      // number of chunks in use
	long   [][]byte // records too long for a chunk
	used   int      // bytes of chunks in use and of long
	shared int      // length of the prefix that all keys share
	runs   []Run
	made   int
}

// An item locates a record in memory.
type item struct {
	prefix     uint64 // first bytes of the key after the shared prefix, set by sort; decides most comparisons
	chunk, at  uint32 // if chunk has the bit isLong, the rest is an index into long
	key, value uint32 // lengths
	part       uint32
}

const isLong = 1 << 31

// A Run is a file of sorted records.
type Run struct {
	Name  string
	Parts []Extent // by part
}

// An Extent is the range of bytes of a part in a run.
type Extent struct{ Offset, Length int64 }

func (r *Run) size() (n int64) {
	for _, e := range r.Parts {
		n += e.Length
	}
	return n
}

// New returns a Sorter. The caller closes it.
func New(cfg Config) *Sorter {
	cfg = cfg.withDefaults()
	return &Sorter{cfg: cfg, chunk: min(max(cfg.Memory/8, 64), maxChunk)}
}

// Add adds a record. It copies key and value.
func (s *Sorter) Add(part int, key, value []byte) error {
	n := len(key) + len(value)
	if len(key) >= maxRecord || len(value) >= maxRecord {
		return fmt.Errorf("sort: record of %d bytes exceeds the limit of %d", n, maxRecord)
	}
	if part < 0 || part >= s.cfg.Parts {
		return fmt.Errorf("sort: part %d of a record is out of range: there are %d parts", part, s.cfg.Parts)
	}
	if len(s.items) > 0 && s.used+s.growth(n)+itemSize*(len(s.items)+1) > s.cfg.Memory {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.updateShared(key)
	it := item{key: uint32(len(key)), value: uint32(len(value)), part: uint32(part)}
	s.used += s.growth(n)
	if s.isLong(n) {
		it.chunk = isLong | uint32(len(s.long))
		s.long = append(s.long, append(append(make([]byte, 0, n), key...), value...))
	} else {
		c := s.chunkFor(n)
		it.chunk, it.at = uint32(s.fill-1), uint32(len(*c))
		*c = append(append(*c, key...), value...)
	}
	s.items = append(s.items, it)
	return nil
}

// updateShared shortens the shared prefix to what key has in common with the keys in memory.
func (s *Sorter) updateShared(key []byte) {
	if len(s.items) == 0 {
		s.shared = len(key)
		return
	}
	first, _ := s.record(&s.items[0])
	s.shared = min(s.shared, len(key))
	for i, c := range key[:s.shared] {
		if first[i] != c {
			s.shared = i
			return
		}
	}
}

// isLong reports whether a record of n bytes gets its own memory, so that no chunk stays mostly empty.
func (s *Sorter) isLong(n int) bool { return n > s.chunk/4 }

// fits reports whether n bytes fit into the current chunk.
func (s *Sorter) fits(n int) bool { return s.fill > 0 && len(s.chunks[s.fill-1])+n <= s.chunk }

// growth returns the memory that adding a record of n bytes would take.
func (s *Sorter) growth(n int) int {
	switch {
	case s.isLong(n):
		return n
	case s.fits(n):
		return 0
	}
	return s.chunk
}

// chunkFor returns the chunk to which to append n bytes.
func (s *Sorter) chunkFor(n int) *[]byte {
	if !s.fits(n) {
		if s.fill == len(s.chunks) {
			s.chunks = append(s.chunks, make([]byte, 0, s.chunk))
		}
		s.fill++
	}
	return &s.chunks[s.fill-1]
}

// prefix returns the first 8 bytes of a key as a number. A shorter key is padded with zeros, so its number is not
// greater than those of the keys that begin with it.
func prefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

func (s *Sorter) record(it *item) (key, value []byte) {
	var b []byte
	if it.chunk&isLong != 0 {
		b = s.long[it.chunk&^isLong]
	} else {
		b = s.chunks[it.chunk][it.at:]
	}
	return b[:it.key:it.key], b[it.key : it.key+it.value : it.key+it.value]
}

func (s *Sorter) sort() {
	for i := range s.items {
		key, _ := s.record(&s.items[i])
		s.items[i].prefix = prefix(key[s.shared:])
	}
	slices.SortFunc(s.items, func(a, b item) int {
		if a.part != b.part {
			return cmp.Compare(a.part, b.part)
		}
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		aKey, aValue := s.record(&a)
		bKey, bValue := s.record(&b)
		if c := compare(aKey, aValue, bKey, bValue); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.chunk, b.chunk), cmp.Compare(a.at, b.at)) // in order of arrival
	})
}

// compare orders records by key, then by the beginning of the value.
func compare(aKey, aValue, bKey, bValue []byte) int {
	if c := bytes.Compare(aKey, bKey); c != 0 {
		return c
	}
	return bytes.Compare(aValue[:min(len(aValue), comparedBytes)], bValue[:min(len(bValue), comparedBytes)])
}

// spill writes the records in memory to disk as a run.
func (s *Sorter) spill() error {
	s.sort()
	run, err := s.write(func(part int) (source, error) { return s.inMemory(part), nil })
	if err != nil {
		return err
	}
	s.runs = append(s.runs, run)
	s.reset()
	return nil
}

// reset empties the memory, but keeps the chunks.
func (s *Sorter) reset() {
	for i := range s.chunks[:s.fill] {
		s.chunks[i] = s.chunks[i][:0]
	}
	s.items, s.long, s.fill, s.used = s.items[:0], nil, 0, 0
}

// inMemory returns the sorted records of a part in memory.
func (s *Sorter) inMemory(part int) *memory {
	byPart := func(it item, part int) int { return cmp.Compare(int(it.part), part) }
	from, _ := slices.BinarySearchFunc(s.items, part, byPart)
	to, _ := slices.BinarySearchFunc(s.items, part+1, byPart)
	return &memory{sorter: s, items: s.items[from:to]}
}

func (s *Sorter) write(of func(part int) (source, error)) (Run, error) {
	s.made++
	return writeRun(&s.cfg, filepath.Join(s.cfg.Dir, fmt.Sprintf("run-%05d", s.made)), s.cfg.Parts, of)
}

// Sorted returns all records of a part in order. No records may be added afterwards. It may be called once for each
// part, and the results may be read in any order or at the same time. The caller closes the result before the Sorter.
func (s *Sorter) Sorted(part int) (*Merge, error) {
	s.sort()
	for len(s.runs) >= fanIn {
		if err := s.mergeSmallest(); err != nil {
			return nil, err
		}
	}
	m := &Merge{disk: s.cfg.Disk}
	if err := m.open(s.runs, part); err != nil {
		return nil, err
	}
	m.all = append(m.all, s.inMemory(part))
	return m, nil
}

// mergeSmallest merges the smallest runs into one: just as many as needed so that the remaining runs can be merged at
// once.
func (s *Sorter) mergeSmallest() error {
	slices.SortStableFunc(s.runs, func(a, b Run) int { return cmp.Compare(a.size(), b.size()) })
	few := s.runs[:min(fanIn, len(s.runs)-fanIn+2)]
	run, err := s.write(func(part int) (source, error) {
		m := &Merge{disk: s.cfg.Disk}
		return m, m.open(few, part)
	})
	if err != nil {
		return err
	}
	for i := range few {
		err = errors.Join(err, s.cfg.Disk.Remove(few[i].Name))
	}
	s.runs = append(s.runs[len(few):], run)
	return err
}

// Runs writes the records in memory and hands over all runs: the caller removes their files. The Sorter is empty
// afterwards.
func (s *Sorter) Runs() ([]Run, error) {
	if len(s.items) > 0 {
		if err := s.spill(); err != nil {
			return nil, err
		}
	}
	runs := s.runs
	s.runs = nil
	return runs, nil
}

// Close removes the runs that were not handed over.
func (s *Sorter) Close() (err error) {
	for i := range s.runs {
		err = errors.Join(err, s.cfg.Disk.Remove(s.runs[i].Name))
	}
	s.runs, s.items, s.chunks, s.long = nil, nil, nil, nil
	return err
}
