package verify

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// A sorter sorts claims: what memory does not hold goes in sorted runs to a folder that close removes.
type sorter struct {
	parent string
	dir    string // "" as long as nothing was written
	room   int    // bytes
	arena  []byte
	items  []item
	runs   []string
	made   int
}

// An item is a claim's place in the arena: its URL, then its kind and body.
type item struct{ url, kind, end int }

const (
	defaultMemory = 128 << 20
	itemSize      = 24
	fanIn         = 64 // runs merged at once
)

func newSorter(parent string, room int) *sorter {
	if room <= 0 {
		room = defaultMemory
	}
	return &sorter{parent: parent, room: room}
}

// add adds a claim.
func (s *sorter) add(url string, kind kind, body []byte) error {
	if len(s.arena)+itemSize*len(s.items) >= s.room {
		if err := s.spill(); err != nil {
			return err
		}
	}
	at := len(s.arena)
	s.arena = append(append(append(s.arena, url...), byte(kind)), body...)
	s.items = append(s.items, item{at, at + len(url), len(s.arena)})
	return nil
}

func (s *sorter) sort() {
	slices.SortFunc(s.items, func(a, b item) int {
		if c := bytes.Compare(s.arena[a.url:a.kind], s.arena[b.url:b.kind]); c != 0 {
			return c
		}
		return bytes.Compare(s.arena[a.kind:a.end], s.arena[b.kind:b.end])
	})
}

func (s *sorter) spill() error {
	s.sort()
	if err := s.write(&memorySource{sorter: s}); err != nil {
		return err
	}
	s.arena, s.items = s.arena[:0], s.items[:0]
	if len(s.runs) < fanIn {
		return nil
	}
	old := s.runs
	s.runs = nil
	src, err := openRuns(old)
	if err != nil {
		return err
	}
	if err := errors.Join(s.write(src), src.close()); err != nil {
		return err
	}
	for _, name := range old {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// write writes a run.
func (s *sorter) write(src source) (err error) {
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp(s.parent, "kumo-verify-"); err != nil {
			return err
		}
	}
	s.made++
	name := filepath.Join(s.dir, fmt.Sprint(s.made))
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(256<<10))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(z)
	var head []byte
	for {
		c, err := src.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		head = binary.AppendUvarint(head[:0], uint64(len(c.url)))
		head = binary.AppendUvarint(head, uint64(len(c.body)))
		head = append(head, byte(c.kind))
		for _, b := range [][]byte{head, c.url, c.body} {
			if _, err := out.Write(b); err != nil {
				return err
			}
		}
	}
	s.runs = append(s.runs, name)
	return errors.Join(out.Flush(), z.Close())
}

// sorted gives all claims in order. Nothing may be added any more.
func (s *sorter) sorted() (source, error) {
	s.sort()
	if len(s.runs) == 0 {
		return &memorySource{sorter: s}, nil
	}
	src, err := openRuns(s.runs)
	if err != nil {
		return nil, err
	}
	src.add(&memorySource{sorter: s})
	return src, nil
}

func (s *sorter) close() error {
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}
