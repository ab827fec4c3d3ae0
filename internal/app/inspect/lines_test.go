package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
)

// The index finds the same lines as a scan, while the file grows, has an incomplete last line, is truncated or
// replaced, and after a query was canceled.
func TestLinesAreThoseOfTheFile(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	name := filepath.Join(dir, "pages.jsonl")
	known, plain := NewView(nil, dir, vfs.OS, true, nil), NewView(nil, dir, vfs.OS, true, nil)
	known.UseLines(&LineIndex{limit: dice.IntN(2) * 5000})
	compare := func() {
		t.Helper()
		for range 20 {
			url := fmt.Sprintf("http://h.test/%d\"x", dice.IntN(3000))
			want, err := plain.findLines(t.Context(), "pages.jsonl", "url", url)
			if err != nil {
				t.Fatal(err)
			}
			got, err := known.findLines(t.Context(), "pages.jsonl", "url", url)
			for errors.Is(err, ErrReading) { // the machine is busy
				got, err = known.findLines(t.Context(), "pages.jsonl", "url", url)
			}
			if err != nil || !bytes.Equal(got.first, want.first) || !bytes.Equal(got.last, want.last) {
				t.Fatalf("%s: %s ... %s, %v\nwant %s ... %s", url, got.first, got.last, err, want.first, want.last)
			}
		}
	}
	compare()
	var all []byte
	for round := range 60 {
		switch dice.IntN(12) {
		case 0: // truncated
			all = all[:bytes.LastIndexByte(all[:dice.IntN(len(all)+1)], '\n')+1]
		case 1: // replaced
			all = nil
		case 2: // the last line has no newline yet
			all = bytes.TrimSuffix(all, []byte("\n"))
		case 3:
			gone, leave := context.WithCancel(t.Context())
			leave()
			if _, err := known.findLines(gone, "pages.jsonl", "url", "http://h.test/"); err != nil &&
				!errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		for range dice.IntN(2000) {
			all = fmt.Appendf(all, `{"url":"http://h.test/%d\"x","n":%d,"title":"%0*d"}`+"\n", dice.IntN(3000), round,
				dice.IntN(150), 0)
		}
		if err := os.WriteFile(name, all, 0o600); err != nil {
			t.Fatal(err)
		}
		compare()
	}
	if f := known.lines.file(name); len(f.hashes) == 0 || len(f.parts) < 2 {
		t.Errorf("%d lines in %d parts are known", len(f.hashes), len(f.parts))
	}
}

// A stalled disk blocks reads until they are allowed.
type stalled struct {
	vfs.FS
	may chan struct{}
}

type stalledFile struct {
	vfs.ReaderAt
	may chan struct{}
}

func (s stalled) OpenAt(name string) (vfs.ReaderAt, error) {
	src, err := s.FS.OpenAt(name)
	return stalledFile{src, s.may}, err
}

func (s stalledFile) ReadAt(b []byte, at int64) (int, error) {
	<-s.may
	return s.ReaderAt.ReadAt(b, at)
}

// A query during the first indexing of a file returns in time with an error; the next one succeeds.
func TestLinesAreGatheredBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		text := `{"url":"http://h.test/","status":200,"type":"text/html"}` + "\n"
		if err := os.WriteFile(filepath.Join(dir, "pages.jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		disk := stalled{vfs.OS, make(chan struct{})}
		v := NewView(nil, dir, disk, true, nil)
		v.UseLines(&LineIndex{syncBytes: 1})
		for range 2 {
			begin := time.Now()
			x := &Explanation{URL: "http://h.test/", Known: &Known{}}
			if err := v.addFiles(t.Context(), x); err != nil || !x.Reading || x.Page != nil {
				t.Errorf("%+v, %v", x, err)
			}
			if x.SetOutcome(); x.Fate != Unread || time.Since(begin) > time.Second {
				t.Errorf("%s after %v", x.Fate, time.Since(begin))
			}
		}
		close(disk.may)
		synctest.Wait()
		x := &Explanation{URL: "http://h.test/", Known: &Known{}}
		if err := v.addFiles(t.Context(), x); err != nil || x.Reading || x.Page == nil {
			t.Errorf("%+v, %v", x, err)
		}
	})
}

// Lines after the limit of the index are found, however long that takes.
func TestLinesBehindAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var all []byte
		for i := range 50_000 {
			all = fmt.Appendf(all, `{"url":"http://h.test/%d","status":200}`+"\n", i)
		}
		if err := os.WriteFile(filepath.Join(dir, "pages.jsonl"), all, 0o600); err != nil {
			t.Fatal(err)
		}
		v := NewView(nil, dir, vfstest.NewSlow(vfs.OS, func(string) { time.Sleep(2 * lineTimeout) }), true, nil)
		v.UseLines(&LineIndex{limit: 100})
		for _, url := range []string{"http://h.test/7", "http://h.test/49999"} {
			e, err := v.findLines(t.Context(), "pages.jsonl", "url", url)
			if err != nil || !bytes.Contains(e.last, []byte(url)) {
				t.Errorf("%s: %s, %v", url, e.last, err)
			}
		}
	})
}

// A query while a truncated file is indexed again returns in time, or when its context ends.
func TestACutFileIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "pages.jsonl")
		text := `{"url":"http://h.test/","status":200,"type":"text/html"}` + "\n"
		stalls := make(chan struct{})
		close(stalls)
		v := NewView(nil, filepath.Dir(name), vfstest.NewSlow(vfs.OS, func(call string) {
			if call == "read" {
				<-stalls
			}
		}), true, nil)
		v.UseLines(&LineIndex{syncBytes: 1})
		write := func(text string) {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		find := func(ctx context.Context, url string) error {
			_, err := v.findLines(ctx, "pages.jsonl", "url", url)
			return err
		}
		write(text + text)
		if err := find(t.Context(), "http://h.test/"); err != nil {
			t.Fatal(err)
		}
		stalls = make(chan struct{})
		write(text)
		begin := time.Now()
		if err := find(t.Context(), "http://h.test/none"); !errors.Is(err, ErrReading) {
			t.Error(err)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := find(gone, "http://h.test/none"); !errors.Is(err, context.Canceled) || time.Since(begin) > time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		close(stalls)
		synctest.Wait()
		if err := find(t.Context(), "http://h.test/"); err != nil {
			t.Error(err)
		}
	})
}

// Lines of a file that has grown a lot since it was indexed are found at once.
func TestLinesOfAFileThatGrowsFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		v := NewView(nil, dir, vfstest.NewSlow(vfs.OS, func(string) { time.Sleep(lineTimeout / 8) }), true, nil)
		v.UseLines(&LineIndex{syncBytes: 1 << 10})
		var all []byte
		for round := range 3 {
			url := fmt.Sprint("http://h.test/", round)
			for range 100_000 {
				all = fmt.Appendf(all, `{"url":%q,"status":200}`+"\n", url)
			}
			if err := os.WriteFile(filepath.Join(dir, "pages.jsonl"), all, 0o600); err != nil {
				t.Fatal(err)
			}
			e, err := v.findLines(t.Context(), "pages.jsonl", "url", url)
			if round == 0 && errors.Is(err, ErrReading) {
				time.Sleep(time.Minute)
				e, err = v.findLines(t.Context(), "pages.jsonl", "url", url)
			}
			if err != nil || !bytes.Contains(e.last, []byte(url)) {
				t.Errorf("%s: %s, %v", url, e.last, err)
			}
		}
		time.Sleep(time.Minute) // until the whole file is indexed
	})
}
