// Package recordtest writes record files for tests, in the same way as a crawl, and damages them on demand.
package recordtest

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
	"kumo/internal/state/store/crawllog"
	"kumo/internal/state/store/jsonl"
	"kumo/internal/state/store/warc"
)

// Files is a crawl's folder. WARC is its first or only WARC file.
type Files struct {
	testing.TB
	Dir        string
	WARC, CDXJ string // relative to Dir, with slashes
	Marks      []store.Mark
}

// A Record is a readable record of the WARC file.
type Record struct {
	Kind, URL  string
	At, Length int64
}

// Write writes the records of visits. Each is written before the next is requested, so that visits may refer to earlier
// ones.
func Write(t testing.TB, compression string, visits iter.Seq[*page.Record], skips ...*page.Skip) *Files {
	t.Helper()
	f := &Files{TB: t, Dir: t.TempDir()}
	stores := f.open(compression)
	for rec := range visits {
		for _, s := range stores {
			f.must(s.Put(rec))
		}
	}
	for _, skip := range skips {
		for _, s := range stores {
			f.must(s.PutSkip(skip))
		}
	}
	for _, s := range stores {
		marks, err := s.Mark()
		f.must(errors.Join(err, s.Sync(), s.Finalize(), s.Close()))
		f.Marks = append(f.Marks, marks...)
	}
	names, err := filepath.Glob(filepath.Join(f.Dir, "warc", "*.warc.*"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	f.WARC = "warc/" + filepath.Base(names[0])
	stem, _, _ := strings.Cut(f.WARC, ".warc.")
	f.CDXJ = stem + ".cdxj"
	return f
}

func (f *Files) open(compression string) []store.Store {
	w, warcErr := warc.Open(vfs.OS, warc.Config{Dir: f.Dir, Name: "test", Hostname: "host", Compression: compression}, nil)
	pages, pagesErr := jsonl.Open(vfs.OS, jsonl.Config{Dir: f.Dir}, nil)
	texts, textsErr := jsonl.OpenTexts(vfs.OS, jsonl.Config{Dir: f.Dir}, nil)
	fields, fieldsErr := jsonl.OpenFields(vfs.OS, jsonl.Config{Dir: f.Dir}, nil)
	log, logErr := crawllog.Open(vfs.OS, crawllog.Config{Dir: f.Dir}, nil)
	f.must(errors.Join(warcErr, pagesErr, textsErr, fieldsErr, logErr))
	return []store.Store{w, pages, texts, fields, log} // the WARC store comes first: it sets the locations of records
}

func (f *Files) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// Path returns the path of a file in the folder.
func (f *Files) Path(name string) string { return filepath.Join(f.Dir, filepath.FromSlash(name)) }

// Text returns the content of a file.
func (f *Files) Text(name string) string {
	f.Helper()
	b, err := os.ReadFile(f.Path(name))
	f.must(err)
	return string(b)
}

// Put replaces the content of a file.
func (f *Files) Put(name, text string) {
	f.Helper()
	f.must(os.WriteFile(f.Path(name), []byte(text), 0o600))
}

// Records returns the readable records of the WARC file.
func (f *Files) Records() (all []Record) {
	f.Helper()
	b := []byte(f.Text(f.WARC))
	in, err := warc.NewReader(bytes.NewReader(b), int64(len(b)), f.WARC)
	f.must(err)
	for {
		rec, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return all
		case rec == nil:
			in.Skip()
		case err == nil:
			all = append(all, Record{rec.Fields["WARC-Type"], rec.Fields["WARC-Target-URI"], rec.Offset, rec.Length})
		}
	}
}

// Record returns the n-th record of a kind, counted from 0.
func (f *Files) Record(kind string, n int) Record {
	f.Helper()
	for _, r := range f.Records() {
		if r.Kind == kind {
			if n--; n < 0 {
				return r
			}
		}
	}
	f.Fatalf("record of kind %s not found", kind)
	return Record{}
}

// Flip damages a byte in the middle of a record.
func (f *Files) Flip(r Record) {
	f.Helper()
	b := []byte(f.Text(f.WARC))
	b[r.At+r.Length/2] ^= 0x20
	f.Put(f.WARC, string(b))
}
