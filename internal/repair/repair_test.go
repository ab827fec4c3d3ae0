package repair

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/page"
	"kumo/internal/store"
	"kumo/internal/store/crawllog"
	"kumo/internal/store/jsonl"
	"kumo/internal/store/storetest"
	"kumo/internal/store/warc"
	"kumo/internal/vfs"
)

// A patient is a folder with the record files of a few visits: one WARC file, its index, lists and the log.
type patient struct {
	*testing.T
	dir, warc, cdxj string
	records         []warcRecord
}

// A warcRecord is one of the WARC file's.
type warcRecord struct {
	kind, url string
	span
}

func newPatient(t *testing.T, compression string, visits ...*page.Record) *patient {
	t.Helper()
	p := &patient{T: t, dir: t.TempDir()}
	w, err := warc.Open(vfs.OS, warc.Config{Dir: p.dir, Name: "test", Hostname: "host", Compression: compression}, nil)
	if err != nil {
		t.Fatal(err)
	}
	j, jErr := jsonl.Open(vfs.OS, jsonl.Config{Dir: p.dir}, nil)
	x, xErr := jsonl.OpenTexts(vfs.OS, jsonl.Config{Dir: p.dir}, nil)
	l, lErr := crawllog.Open(vfs.OS, crawllog.Config{Dir: p.dir}, nil)
	if err := errors.Join(jErr, xErr, lErr); err != nil {
		t.Fatal(err)
	}
	stores := []store.Store{w, j, x, l}
	for _, rec := range visits {
		for _, s := range stores {
			if err := s.Put(rec); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range 2 {
		if err := j.PutSkip(storetest.Skip(n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range stores {
		_, err := s.Mark()
		if err := errors.Join(err, s.Sync(), s.Settle(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	names, err := filepath.Glob(filepath.Join(p.dir, "warc", "*.warc.*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	p.warc = "warc/" + filepath.Base(names[0])
	stem, _, _ := strings.Cut(p.warc, ".warc.")
	p.cdxj = stem + ".cdxj"
	p.records = p.read()
	return p
}

func visits(n int) (all []*page.Record) {
	for i := range n {
		all = append(all, storetest.Record(i))
	}
	return all
}

func url(n int) string { return storetest.Record(n).URL }

func (p *patient) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

func (p *patient) text(name string) string {
	p.Helper()
	b, err := os.ReadFile(p.path(name))
	if err != nil {
		p.Fatal(err)
	}
	return string(b)
}

func (p *patient) write(name, text string) {
	p.Helper()
	if err := os.WriteFile(p.path(name), []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// read reads what can be read of the WARC file.
func (p *patient) read() (all []warcRecord) {
	p.Helper()
	b := []byte(p.text(p.warc))
	in, err := warc.NewReader(bytes.NewReader(b), int64(len(b)), p.warc)
	if err != nil {
		p.Fatal(err)
	}
	for {
		rec, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return all
		case rec == nil:
			in.Skip()
		case err == nil:
			all = append(all, warcRecord{rec.Fields["WARC-Type"], rec.Fields["WARC-Target-URI"], span{rec.Offset, rec.Length}})
		}
	}
}

// of is the n-th record of a kind.
func (p *patient) of(kind string, n int) warcRecord {
	p.Helper()
	for _, r := range p.records {
		if r.kind == kind {
			if n--; n < 0 {
				return r
			}
		}
	}
	p.Fatalf("there is no such %s", kind)
	return warcRecord{}
}

// flip damages a byte in the middle of a record.
func (p *patient) flip(r warcRecord) {
	b := []byte(p.text(p.warc))
	b[r.at+r.length/2] ^= 0x20
	p.write(p.warc, string(b))
}

// urls are those of the answers that are left, in their order.
func (p *patient) urls() (all []string) {
	for _, r := range p.read() {
		if r.kind == "response" || r.kind == "revisit" || r.kind == "resource" {
			all = append(all, r.url)
		}
	}
	return all
}

func (p *patient) clean(drop *Drop) Dropped {
	p.Helper()
	done, err := Clean(p.dir, drop, false)
	if err != nil {
		p.Fatal(err)
	}
	return done
}

// wantAgree wants exactly these visits in all files, at the places that their lines name, and each with all its records.
func (p *patient) wantAgree(urls ...string) {
	p.Helper()
	want := slices.Sorted(slices.Values(urls))
	kinds := map[string]int{}
	places := map[int64]string{}
	for _, r := range p.read() {
		kinds[r.kind]++
		places[r.at] = r.url
	}
	if kinds["response"] != len(want) || kinds["request"] != len(want) || kinds["metadata"] != len(want) || kinds["warcinfo"] != 1 {
		p.Errorf("records of %d visits: %v", len(want), kinds)
	}
	var pages, index, log []string
	for line := range strings.Lines(p.text("pages.jsonl")) {
		x, err := jsonl.ParsePage([]byte(line))
		if err != nil || "warc/"+x.WARC != p.warc || places[x.Offset] != x.URL {
			p.Errorf("pages.jsonl: %s: %v, there is %q", line, err, places[x.Offset])
		}
		pages = append(pages, x.URL)
	}
	for line := range strings.Lines(p.text(p.cdxj)) {
		x, err := warc.ParseIndexLine([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil || "warc/"+x.File != p.warc || places[x.Offset] != x.URL {
			p.Errorf("index: %s: %v, there is %q", line, err, places[x.Offset])
		}
		index = append(index, x.URL)
	}
	for line := range strings.Lines(p.text("crawl.log")) {
		x, err := crawllog.Parse([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			p.Errorf("crawl.log: %s: %v", line, err)
		}
		log = append(log, x.URL)
	}
	for name, got := range map[string][]string{"pages.jsonl": pages, "the index": index, "crawl.log": log} {
		if slices.Sort(got); !slices.Equal(got, want) {
			p.Errorf("%s has %v, want %v", name, got, want)
		}
	}
}

// What cannot be read costs the visit that it belongs to, and not the one before, which is whole.
func TestADamagedAnswerLeavesTheVisitBeforeItAlone(t *testing.T) {
	for _, compression := range []string{"gzip", "zstd"} {
		for _, kind := range []string{"response", "request", "metadata"} {
			t.Run(compression+" "+kind, func(t *testing.T) {
				p := newPatient(t, compression, visits(4)...)
				p.flip(p.of(kind, 1))
				p.clean(NewDrop())
				got := p.urls()
				want := []string{url(0), url(2), url(3)}
				if kind == "request" { // which nobody misses
					want = slices.Insert(want, 1, url(1))
				}
				if !slices.Equal(got, want) {
					t.Errorf("left are %v, want %v", got, want)
				}
			})
		}
	}
}
