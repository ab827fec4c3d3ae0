package frontier

import (
	"errors"
	"os"
	"sync"
	"testing"

	"kumo/internal/base/vfs"
)

// store combines segments with the types that read and write their files.
type store struct {
	mu sync.Mutex
	*segments
	pages  *pager
	writer *segmentWriter
}

func newStore(t *testing.T, full int64) *store {
	s := &store{segments: newSegments(vfs.OS, t.TempDir(), full)}
	s.pages = newPager(&s.mu, s.segments)
	s.writer = &segmentWriter{mu: &s.mu, segments: s.segments, pages: s.pages}
	t.Cleanup(func() {
		if err := s.writer.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *store) add(body string) chunk {
	at, n := s.append(func(w *writer) { w.b = append(w.b, body...) })
	return chunk{at, n}
}

// read reads frames, and counts how often it had to restart.
func (s *store) read(t *testing.T, chunks ...chunk) (bodies []string, begun int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.pages.run(func() error {
		begun++
		bodies = bodies[:0]
		for _, c := range chunks {
			frame, err := s.pages.frame(c.at, c.size)
			if err != nil {
				return err
			}
			bodies = append(bodies, string(frame))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bodies, begun
}

// A frame is read from memory until it is written, then from its file, once in each run.
func TestFramesAreReadBeforeAndAfterTheyAreWritten(t *testing.T) {
	s := newStore(t, 64)
	a, b := s.add("first"), s.add("second")
	if bodies, begun := s.read(t, a, b); begun != 1 || bodies[0] != "first" || bodies[1] != "second" {
		t.Errorf("in memory: %q after %d attempts", bodies, begun)
	}
	s.behind.seal()
	if err := s.writer.writeExtents(); err != nil {
		t.Fatal(err)
	}
	if bodies, begun := s.read(t, a, b, a); begun != 3 || bodies[0] != "first" || bodies[1] != "second" {
		t.Errorf("on the disk: %q after %d attempts", bodies, begun)
	}
}

// A segment without frames in use is removed when no checkpoint names it and nobody reads it.
func TestASegmentStaysWhileACheckpointOrAReaderNeedsIt(t *testing.T) {
	exists := func(s *store, id uint32) bool {
		s.behind.seal()
		if err := s.writer.writeExtents(); err != nil {
			t.Fatal(err)
		}
		s.writer.removeSegments()
		_, err := os.Stat(s.folder.segment(id))
		return err == nil
	}
	for _, tt := range []struct {
		name        string
		hold, leave func(*store)
	}{
		{"nobody", nil, nil},
		{"a reader", func(s *store) { s.pages.pin() }, func(s *store) { s.pages.unpin() }},
		{"a checkpoint", func(s *store) {
			if err := s.retained.begin(s.all); err != nil {
				t.Fatal(err)
			}
			s.retained.end(true)
		}, func(s *store) {
			if err := s.retained.begin(s.all); err != nil {
				t.Fatal(err)
			}
			s.retained.end(true)
		}},
	} {
		s := newStore(t, 16)
		first := s.add("a frame that fills a segment")
		s.add("another frame, in the next segment")
		if tt.hold != nil {
			tt.hold(s)
		}
		s.release([]chunk{first})
		if exists(s, 1) != (tt.hold != nil) || s.live != s.all[2].size {
			t.Errorf("%s: wrong after the frame went out of use: %d bytes are in use", tt.name, s.live)
		}
		if tt.leave != nil {
			if tt.leave(s); exists(s, 1) {
				t.Errorf("%s: the segment is kept for ever", tt.name)
			}
		}
	}
}

func TestTwoCheckpointsAreNotWrittenAtOnce(t *testing.T) {
	s := newStore(t, 64)
	s.add("a")
	if err := s.retained.begin(s.all); err != nil {
		t.Fatal(err)
	}
	if s.retained.begin(s.all) == nil {
		t.Error("a second checkpoint has begun")
	}
	s.retained.end(false)
	s.retained.broken = errors.New("sync failed")
	if err := s.retained.begin(s.all); !errors.Is(err, s.retained.broken) {
		t.Errorf("after a failed sync: %v", err)
	}
}
