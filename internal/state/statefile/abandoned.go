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

// An Abandoned keeps on the disk what was given up with its origin, for the next run: a file a run. What counts of
// it is what a checkpoint names; what was put there later, the frontier's part of that checkpoint or the journal's rest
// has. A nil AbandonedQueue keeps nothing.
type AbandonedQueue struct {
	Slices *item.Slices // that the crawl's hosts are cut into; set before it is used

	disk vfs.FS
	dir  string
	last AbandonedMark // what the run began with

	mu         sync.Mutex // guards below
	log        *vfs.Log   // of this run; nil until something is put
	mark       AbandonedMark
	err        error // what is missing in log is in no checkpoint that follows
	oldRemoved bool  // what earlier runs had is gone
}

// An AbandonedMark is what a checkpoint names.
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

// Close closes the file. What no checkpoint has is not kept.
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

// Begin begins a run, behind what a checkpoint names.
func (s *AbandonedQueue) Begin(last AbandonedMark) {
	s.last, s.mark = last, AbandonedMark{Run: last.Run + 1}
}

// The kinds of frames in a file.
const (
	frameItem      = 'i' // an item
	frameTombstone = 'v' // a host of which nothing counts that is before
)

// Put keeps an item.
func (s *AbandonedQueue) Put(it *item.Item) error {
	return s.append(item.AppendBody([]byte{frameItem}, "", it))
}

// RemoveHost lets what was put of a host, or of a slice of one, so far count no longer.
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
	return fmt.Errorf("keep what is given up: %w", s.err)
}

// Mark makes durable what was put, and returns what a checkpoint of this moment is to name.
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

// flush hands all to the operating system.
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

// RemoveOld removes what earlier runs had, when a checkpoint of this one is durable.
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

// EachEarlier calls f with what the run began with.
func (s *AbandonedQueue) EachEarlier(f func(it item.Item) error) error {
	if s == nil {
		return nil
	}
	return s.read(s.last, f)
}

// Find looks for a URL among what this run has given up.
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

var errAbandoned = errors.New("it is not as it was written")

// EachCurrent calls f with what this run has given up.
func (s *AbandonedQueue) EachCurrent(f func(it item.Item) error) error {
	to, err := s.flush()
	if err != nil || s == nil {
		return err
	}
	return s.read(to, f)
}

// read calls f with what a file has up to a mark, and that counts.
func (s *AbandonedQueue) read(to AbandonedMark, f func(it item.Item) error) error {
	void := map[string]int64{} // where hosts begin to count
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

// frames calls f with all that is in a file up to a mark, and with the offset behind it.
func (s *AbandonedQueue) frames(to AbandonedMark, f func(kind byte, body []byte, end int64) error) error {
	if to.Length == 0 {
		return nil
	}
	src, err := s.disk.Open(s.name(to.Run))
	if err == nil {
		defer func() { _ = src.Close() }() // it is only read
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
		return fmt.Errorf("read what was given up from %s: %w", s.name(to.Run), err)
	}
	return nil
}
