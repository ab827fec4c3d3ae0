package sinks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/lookup"
	"kumo/internal/archive/fulltext"
	"kumo/internal/archive/sink"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
)

// A crawl with a number of pages whose visits can be distinguished.
type crawl struct {
	t    *testing.T
	dir  string
	now  []int // the newest visit of each page; 0: none
	time int
}

func newCrawl(t *testing.T, pages int) *crawl {
	c := &crawl{t: t, dir: t.TempDir(), now: make([]int, pages)}
	for _, dir := range []string{"state", "warc"} {
		if err := os.Mkdir(filepath.Join(c.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(c.dir, settings.Name), []byte("name: test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *crawl) append(name, text string) {
	f, err := os.OpenFile(filepath.Join(c.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		c.t.Fatal(err)
	}
}

// visit adds the lines of a visit.
func (c *crawl) visit(page int) {
	c.time++
	c.now[page] = c.time
	at := time.Date(2026, 1, 1, 0, 0, c.time, 0, time.UTC).Format(time.RFC3339)
	c.append("pages.jsonl",
		fmt.Sprintf(`{"url":"http://a.test/%d","status":200,"time":%q,"type":"text/html","lang":"en","title":"Page %[1]d"}`+"\n", page, at))
	c.append("text.jsonl", fmt.Sprintf(`{"url":"http://a.test/%d","time":%q,"text":"This is visit%d and always visits."}`+
		"\n", page, at, c.time))
}

func (c *crawl) index(ctx context.Context) (*Indexed, error) {
	return Index(ctx, Indexing{Crawl: c.dir, Progress: func(stats.Sink) {}, Warn: func(error) {}})
}

// check checks that the index has each page once, in its newest version.
func (c *crawl) check() {
	c.t.Helper()
	r, err := fulltext.OpenReader(vfs.OS, filepath.Join(c.dir, folder.IndexDir))
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Close()
	count := func(query string) int64 {
		q, err := fulltext.Parse(query)
		if err != nil {
			c.t.Fatal(err)
		}
		f, err := r.Search(c.t.Context(), q, 0, 1)
		if err != nil {
			c.t.Fatal(err)
		}
		return f.Total
	}
	pages := int64(0)
	for page, visit := range c.now {
		if visit == 0 {
			continue
		}
		if pages++; count(fmt.Sprintf("visit%d", visit)) != 1 {
			c.t.Errorf("page %d is not as visit %d found it", page, visit)
		}
	}
	if docs, _ := r.Docs(); docs != pages || count("visit status:200") != pages {
		c.t.Errorf("%d documents, %d found, of %d pages", docs, count("visit status:200"), pages)
	}
}

// However indexing was interrupted, and whatever happened to its files, the next call completes the index: each page
// once, in its newest version.
func TestIndexGoesOn(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	c := newCrawl(t, 120)
	at := filepath.Join(c.dir, folder.IndexDir)
	position := filepath.Join(at, positionName)
	for round := range 14 {
		for range dice.IntN(300) {
			c.visit(dice.IntN(len(c.now)))
		}
		before, _ := os.ReadFile(position)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(dice.IntN(15))*time.Millisecond)
		_, err := c.index(ctx)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		switch names, _ := vfs.OS.List(at); dice.IntN(7) {
		case 0: // the position may be old
			if len(before) > 0 {
				_ = os.WriteFile(position, before, 0o600)
			}
		case 1: // or missing
			_ = os.Remove(position)
		case 2:
			_ = os.RemoveAll(at)
		case 4: // or valid, although the index is not
			_ = os.Remove(filepath.Join(at, "manifest.json"))
		case 3:
			if len(names) > 0 {
				name := filepath.Join(at, names[dice.IntN(len(names))])
				data, _ := os.ReadFile(name)
				_ = os.WriteFile(name, data[:dice.IntN(len(data)+1)], 0o600)
			}
		}
		if c.time == 0 {
			continue
		}
		r, err := c.index(t.Context())
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if r.Docs == 0 || r.Bytes == 0 {
			t.Errorf("%+v", r)
		}
		c.check()
	}
	// The crawl was started again from the beginning.
	for _, name := range []string{"pages.jsonl", "text.jsonl"} {
		_ = os.Remove(filepath.Join(c.dir, name))
	}
	clear(c.now)
	for page := range 5 {
		c.visit(page)
	}
	if _, err := c.index(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.check()
}

// If the manifest is lost, alone or with other files, the position becomes invalid.
func TestIndexWithoutManifest(t *testing.T) {
	c := newCrawl(t, 9)
	for page := range c.now {
		c.visit(page)
	}
	if _, err := c.index(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(c.dir, folder.IndexDir)
	for _, all := range []bool{false, true} {
		names, _ := vfs.OS.List(at)
		for _, name := range names {
			if name == "manifest.json" || all && name != positionName {
				if err := os.Remove(filepath.Join(at, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.visit(0)
		if _, err := c.index(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.check()
	}
}

// An unwilling disk does not open WARC files.
type unwilling struct {
	vfs.FS
	why error
}

func (d *unwilling) OpenAt(name string) (vfs.ReaderAt, error) {
	if strings.HasSuffix(name, ".warc.gz") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: d.why}
	}
	return d.FS.OpenAt(name)
}

func (d *unwilling) Open(name string) (io.ReadCloser, error) {
	if strings.HasSuffix(name, ".warc.gz") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: d.why}
	}
	return d.FS.Open(name)
}

// A text that temporarily cannot be read is found later; the page is not indexed without it. A missing text counts as
// empty.
func TestTextsThatCannotBeReadNow(t *testing.T) {
	c := newCrawl(t, 1)
	c.append("pages.jsonl", `{"url":"http://a.test/","status":200,"type":"text/html","warc":"a.warc.gz"}`+"\n")
	c.append("warc/a.warc.gz", "no archive")
	for why, again := range map[error]bool{syscall.EMFILE: true, fs.ErrPermission: true, fs.ErrNotExist: false,
		syscall.EIO: false, nil: false} {
		disk := vfs.OS
		if why != nil {
			disk = &unwilling{vfs.OS, why}
		}
		text, err := textsIn(lookup.New(disk, c.dir, nil))(t.Context(), &sink.Record{URL: "http://a.test/", Status: 200,
			Type: "text/html"})
		if (err != nil) != again || text != "" {
			t.Errorf("%v: %q, %v", why, text, err)
		}
	}
	in, err := fulltext.Open(vfs.OS, filepath.Join(c.dir, folder.IndexDir))
	if err != nil {
		t.Fatal(err)
	}
	x := &index{in, &missingTexts{html: true, of: func(context.Context, *sink.Record) (string, error) {
		return "", syscall.EMFILE
	}}}
	if err := x.Put(t.Context(), []sink.Record{{URL: "http://a.test/", Status: 200, Type: "text/html"}}); !errors.Is(err,
		syscall.EMFILE) || in.Docs() > 0 {
		t.Errorf("%v, %d documents", err, in.Docs())
	}
}

func TestIndexIsOnesAlone(t *testing.T) {
	c := newCrawl(t, 1)
	c.visit(0)
	f := folder.At(c.dir, vfs.OS)
	if err := f.LockIndex(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.index(t.Context()); !errors.Is(err, folder.ErrLocked) {
		t.Error(err)
	}
	flw := FollowIndex(c.dir, func(error) {})
	if err := flw.Begin(); !errors.Is(err, folder.ErrLocked) || advice.Of(err) == "" {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is let go with the end
		if err := errors.Join(flw.Begin(), flw.FollowStatic()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.index(t.Context()); !errors.Is(err, folder.ErrLocked) {
			t.Error(err)
		}
		flw.End()
		if err := flw.Run(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.index(t.Context()); err != nil {
		t.Error(err)
	}
	c.check()
	if _, err := Index(t.Context(), Indexing{Crawl: filepath.Join(c.dir, "nowhere")}); err == nil ||
		!strings.Contains(err.Error(), "there is no crawl") {
		t.Error(err)
	}
}
