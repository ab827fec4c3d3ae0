package statefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"strconv"
	"sync"

	"kumo/internal/base/item"
	"kumo/internal/base/vfs"
)

// An AbandonedQueue stores on disk the URLs that were abandoned with their origin, for the next run. Each run has a
// file. Its content up to the mark of a checkpoint is valid; for later changes, the frontier's part of that checkpoint
// or the rest of the journal has the URLs. A nil AbandonedQueue stores nothing.
type AbandonedQueue struct {
	Slices *item.Slices // the crawl's slices of hosts; set before use

	disk vfs.FS
	dir  string
	last AbandonedMark // the state at the start of the run

	mu         sync.Mutex // guards all below
	log        *vfs.Log   // file of this run; nil until the first Put
	mark       AbandonedMark
	err        error // after an error, no later checkpoint may include the queue
	oldRemoved bool  // the files of earlier runs were removed
}

// An AbandonedMark identifies the valid content in a checkpoint.
type AbandonedMark struct {
	Run    uint64
	Length int64
	Sum    uint32 // CRC-32C
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// OpenAbandoned opens the abandoned queue of the crawl in dir.
func OpenAbandoned(disk vfs.FS, dir string) *AbandonedQueue {
	return &AbandonedQueue{disk: disk, dir: filepath.Join(dir, "state", "abandoned")}
}

// Close closes the file. Content after the last mark is lost.
func (s *AbandonedQueue) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log == nil {
		return nil
	}
	err := s.log.Close()
	s.log = nil
	return err
}

// Begin starts a run after the mark of the last checkpoint.
func (s *AbandonedQueue) Begin(last AbandonedMark) {
	s.last, s.mark = last, AbandonedMark{Run: last.Run + 1}
}

// The kinds of frames in a file.
const (
	frameItem      = 'i' // an item
	frameTombstone = 'v' // a host, whose earlier items are void
)

// Put stores an item.
func (s *AbandonedQueue) Put(it *item.Item) error {
	return s.append(item.AppendBody([]byte{frameItem}, "", it))
}

// RemoveHost removes the items of a host, or of a slice, stored so far.
func (s *AbandonedQueue) RemoveHost(host string) error {
	return s.append(append([]byte{frameTombstone}, host...))
}

func (s *AbandonedQueue) append(body []byte) error {
	if s == nil {
		return nil
	}
	frame := append(binary.AppendUvarint(nil, uint64(len(body))), body...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.log == nil {
		s.err = s.create()
	}
	if s.err == nil {
		_, s.err = s.log.Append(frame)
	}
	s.mark.Length += int64(len(frame))
	s.mark.Sum = crc32.Update(s.mark.Sum, castagnoli, frame)
	return s.wrapErr()
}

func (s *AbandonedQueue) create() (err error) {
	if err = s.disk.MkdirAll(s.dir); err == nil {
		s.log, err = vfs.OpenLog(s.disk, s.name(s.mark.Run), 0)
	}
	return err
}

func (s *AbandonedQueue) name(run uint64) string {
	return filepath.Join(s.dir, strconv.FormatUint(run, 10))
}

func (s *AbandonedQueue) wrapErr() error {
	if s.err == nil {
		return nil
	}
	return fmt.Errorf("store abandoned URLs: %w", s.err)
}

// Mark makes the items durable, and returns the mark for a checkpoint of this moment.
func (s *AbandonedQueue) Mark() (AbandonedMark, error) {
	to, err := s.flush()
	if err != nil || to.Length == 0 {
		return to, err
	}
	err = s.log.Sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
	return to, s.wrapErr()
}

// flush passes all data to the operating system.
func (s *AbandonedQueue) flush() (AbandonedMark, error) {
	if s == nil {
		return AbandonedMark{}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log != nil && s.err == nil {
		_, s.err = s.log.Mark()
	}
	return s.mark, s.wrapErr()
}

// RemoveOld removes the files of earlier runs. Call it when a checkpoint of this run is durable.
func (s *AbandonedQueue) RemoveOld() error {
	if s == nil || s.oldRemoved {
		return nil
	}
	names, err := s.disk.List(s.dir)
	for _, name := range names {
		if name != filepath.Base(s.name(s.mark.Run)) {
			err = errors.Join(err, s.disk.Remove(filepath.Join(s.dir, name)))
		}
	}
	s.oldRemoved = err == nil
	return err
}

// EachEarlier calls f with the items at the start of the run.
func (s *AbandonedQueue) EachEarlier(f func(it item.Item) error) error {
	if s == nil {
		return nil
	}
	return s.read(s.last, f)
}

// Find returns the item of a URL that this run has abandoned, nil if there is none.
func (s *AbandonedQueue) Find(url string) (found *item.Item, err error) {
	to, err := s.flush()
	if err != nil || s == nil {
		return nil, err
	}
	err = s.read(to, func(it item.Item) error {
		if it.URL == url {
			found = &it
		}
		return nil
	})
	return found, err
}

var errAbandoned = errors.New("the file is damaged")

// EachCurrent calls f with the items that this run has abandoned.
func (s *AbandonedQueue) EachCurrent(f func(it item.Item) error) error {
	to, err := s.flush()
	if err != nil || s == nil {
		return err
	}
	return s.read(to, f)
}

// read calls f with the valid items in a file up to a mark.
func (s *AbandonedQueue) read(to AbandonedMark, f func(it item.Item) error) error {
	void := map[string]int64{} // offset from which the items of a host are valid
	err := s.frames(to, func(kind byte, body []byte, end int64) error {
		if kind == frameTombstone {
			void[string(body)] = end
		}
		return nil
	})
	if err != nil {
		return err
	}
	var items item.Reader
	return s.frames(to, func(kind byte, body []byte, end int64) error {
		if kind != frameItem {
			return nil
		}
		it, err := items.ReadBody(body, "")
		if err != nil || end < void[s.Slices.Of(it.URL)] {
			return err
		}
		return f(it)
	})
}

// frames calls f with all frames in a file up to a mark, and the offset after each.
func (s *AbandonedQueue) frames(to AbandonedMark, f func(kind byte, body []byte, end int64) error) error {
	if to.Length == 0 {
		return nil
	}
	src, err := s.disk.Open(s.name(to.Run))
	if err == nil {
		defer func() { _ = src.Close() }() // read only
		sum := crc32.New(castagnoli)
		var read int64
		err = readFrames(io.TeeReader(io.LimitReader(src, to.Length), sum), func(body []byte, end int64) error {
			read = end
			return f(body[0], body[1:], end)
		})
		if err == nil && (read != to.Length || sum.Sum32() != to.Sum) {
			err = errAbandoned
		}
	}
	if err != nil {
		return fmt.Errorf("read abandoned URLs from %s: %w", s.name(to.Run), err)
	}
	return nil
}
