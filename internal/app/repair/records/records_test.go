package records

import (
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/state/store/crawllog"
	"kumo/internal/state/store/jsonl"
	"kumo/internal/state/store/recordtest"
	"kumo/internal/state/store/storetest"
	"kumo/internal/state/store/warc"
)

// A patient is a folder with the record files of a few visits.
type patient struct{ *recordtest.Files }

func newPatient(t *testing.T, compression string, n int) *patient {
	t.Helper()
	return &patient{recordtest.Write(t, compression, visits(n), storetest.Skip(0), storetest.Skip(1))}
}

func visits(n int) iter.Seq[*page.Record] {
	return func(yield func(*page.Record) bool) {
		for i := range n {
			rec := storetest.Record(i)
			rec.Page.Heading, rec.Page.Description, rec.Page.Canonical = "One: \"two\"", "three", rec.URL
			rec.Page.Variants = []page.Variant{{Lang: "de", URL: "https://example.org/de"}, {Lang: "en", URL: rec.URL}}
			rec.Response.Connect, rec.Response.FirstByte = 7e6, 30e6
			rec.Usage, rec.Withheld = &page.Usage{Uses: page.Uses{TrainAI: "n"}, License: "/l", Source: "robots.txt:1",
				Raw: "Content-Usage: train-ai=n; \"<\""}, "train-ai"
			if !yield(rec) {
				return
			}
		}
	}
}

func url(n int) string { return storetest.Record(n).URL }

func urls(ns ...int) (all []string) {
	for _, n := range ns {
		all = append(all, url(n))
	}
	return all
}

func (p *patient) clean(drop *Drop) Dropped {
	p.Helper()
	done, err := Clean(p.Dir, drop, false)
	if err != nil {
		p.Fatal(err)
	}
	return done
}

// contents returns the contents of all files.
func (p *patient) contents() map[string]string {
	p.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(p.Dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		all[strings.TrimPrefix(filepath.ToSlash(name), filepath.ToSlash(p.Dir)+"/")] = string(text)
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
	return all
}

// listed returns the URLs of a file's lines, whose offsets must be right.
func (p *patient) listed(name string, places map[int64]string) (all []string) {
	p.Helper()
	for line := range strings.Lines(p.Text(name)) {
		line = strings.TrimSuffix(line, "\n")
		var url, file string
		var at int64
		var err error
		switch {
		case strings.HasSuffix(name, ".cdxj"):
			var x warc.IndexLine
			x, err = warc.ParseIndexLine([]byte(line))
			url, file, at = x.URL, x.File, x.Offset
		case name == "pages.jsonl":
			var x jsonl.PageLine
			x, err = jsonl.ParsePage([]byte(line))
			url, file, at = x.URL, x.WARC, x.Offset
		default:
			var x crawllog.Entry
			x, err = crawllog.Parse([]byte(line))
			url = x.URL
		}
		if err != nil || file != "" && ("warc/"+file != p.WARC || places[at] != url) {
			p.Errorf("%s: %s: %v; there is %q", name, line, err, places[at])
		}
		all = append(all, url)
	}
	slices.Sort(all)
	return all
}

// wantAgree checks that all files have exactly these visits, with correct offsets and all records.
func (p *patient) wantAgree(want ...string) {
	p.Helper()
	kinds, places := map[string]int{}, map[int64]string{}
	for _, r := range p.Records() {
		kinds[r.Kind]++
		places[r.At] = r.URL
	}
	if n := len(want); kinds["response"] != n || kinds["request"] != n || kinds["metadata"] != n ||
		kinds["warcinfo"] != 1 {
		p.Errorf("of %d visits there are records %v", n, kinds)
	}
	for _, name := range []string{"pages.jsonl", p.CDXJ, "crawl.log"} {
		if got := p.listed(name, places); !slices.Equal(got, want) {
			p.Errorf("%s has %v, want %v", name, got, want)
		}
	}
}

// answers returns the URLs of the remaining responses.
func (p *patient) answers() (all []string) {
	for _, r := range p.Records() {
		if r.Kind == "response" {
			all = append(all, r.URL)
		}
	}
	return all
}

// An unreadable record costs its own visit, but not the previous one.
func TestADamagedAnswerLeavesTheVisitBeforeItAlone(t *testing.T) {
	for _, compression := range []string{"gzip", "zstd"} {
		// A visit is complete without its request record.
		for kind, want := range map[string][]string{"response": urls(0, 2, 3), "metadata": urls(0, 2, 3),
			"request": urls(0, 1, 2, 3)} {
			t.Run(compression+" "+kind, func(t *testing.T) {
				p := newPatient(t, compression, 4)
				p.Flip(p.Record(kind, 1))
				p.clean(NewDrop())
				if got := p.answers(); !slices.Equal(got, want) {
					t.Errorf("left are %v, want %v", got, want)
				}
			})
		}
	}
}

func TestNothingIsWrittenAnewWhereAllIsWhole(t *testing.T) {
	p := newPatient(t, "gzip", 4)
	before := p.contents()
	if done := p.clean(NewDrop()); done.Lines > 0 || len(done.Visits) > 0 {
		t.Errorf("%+v", done)
	}
	if n, err := Mend(p.Dir); n != 0 || err != nil {
		t.Errorf("%d lines are made, %v", n, err)
	}
	if !maps.Equal(before, p.contents()) {
		t.Error("something is other than before")
	}
	p.wantAgree(urls(0, 1, 2, 3)...)
}

// A URL is removed from all files, and the remaining lines get the new offsets of their records.
func TestAURLGoesFromAllFiles(t *testing.T) {
	for _, compression := range []string{"gzip", "zstd"} {
		p := newPatient(t, compression, 4)
		drop := NewDrop()
		drop.URLs[url(1)] = true
		done := p.clean(drop)
		// One each of pages.jsonl, crawl.log, text.jsonl, fields.jsonl and the index.
		if done.Visits[url(1)] != 1 || len(done.Visits) != 1 || done.Lines != 5 {
			t.Errorf("%s: %+v", compression, done)
		}
		p.wantAgree(urls(0, 2, 3)...)
		if text := p.Text("text.jsonl"); strings.Contains(text, url(1)) || !strings.Contains(text, url(2)) {
			t.Errorf("%s: the texts: %.200s", compression, text)
		}
	}
}

func TestWhatBeginsAtAPlaceGoes(t *testing.T) {
	p := newPatient(t, "gzip", 4)
	drop := NewDrop()
	second := int64(strings.Index(p.Text("crawl.log"), "\n") + 1)
	drop.Add("crawl.log", second)
	drop.Add(p.WARC, p.Record("response", 3).At)
	drop.Add(p.CDXJ, 0)
	// Three more lines refer to the removed record by its offset.
	if done := p.clean(drop); done.Visits[url(3)] != 1 || done.Lines != 5 {
		t.Errorf("%+v", done)
	}
	if got := p.answers(); !slices.Equal(got, urls(0, 1, 2)) {
		t.Errorf("records of %v are left", got)
	}
	// crawl.log does not refer to records, so the line of the removed record remains.
	if log := p.Text("crawl.log"); strings.Contains(log, url(1)) || !strings.Contains(log, url(3)) {
		t.Errorf("the log: %s", log)
	}
}

func TestLinesThatCannotBeReadGo(t *testing.T) {
	p := newPatient(t, "gzip", 3)
	for _, name := range []string{"pages.jsonl", "crawl.log", "text.jsonl", "fields.jsonl", "skipped.jsonl"} {
		p.Put(name, "no line\n"+p.Text(name)+"torn")
	}
	p.Put(p.CDXJ, p.Text(p.CDXJ)+"no line\n")
	if done := p.clean(NewDrop()); done.Lines != 6 {
		t.Errorf("%+v", done)
	}
	p.wantAgree(urls(0, 1, 2)...)
	if n := strings.Count(p.Text("skipped.jsonl"), "\n"); n != 2 || strings.Contains(p.Text("text.jsonl"), "torn") {
		t.Errorf("%d skips are left, texts %.100q", n, p.Text("text.jsonl"))
	}
}

// Lines that refer to a missing file are removed, unless the file was moved on purpose.
func TestLinesOfAMissingFileGo(t *testing.T) {
	for _, moved := range []bool{false, true} {
		p := newPatient(t, "gzip", 3)
		if err := os.Remove(p.Path(p.WARC)); err != nil {
			t.Fatal(err)
		}
		if _, err := Clean(p.Dir, NewDrop(), moved); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(p.Text("pages.jsonl"), "\n"); moved != (n == 3) || !moved && n != 0 {
			t.Errorf("moved %v: %d pages are left", moved, n)
		}
	}
}

func TestAnIndexIsMadeSortedAgain(t *testing.T) {
	p := newPatient(t, "gzip", 3)
	whole := p.Text(p.CDXJ)
	lines := strings.SplitAfter(whole, "\n")
	p.Put(p.CDXJ, lines[1]+lines[0]+lines[2]+lines[1])
	p.clean(NewDrop())
	if got := p.Text(p.CDXJ); got != whole {
		t.Errorf("the index is\n%s, want\n%s", got, whole)
	}
}

// without returns a text without the lines that contain a word.
func without(text, word string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, word) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// Each of the three lines of a visit is rebuilt, unchanged, from the other two and the records.
func TestALineIsMadeOfTheOthers(t *testing.T) {
	for _, compression := range []string{"gzip", "zstd"} {
		p := newPatient(t, compression, 3)
		for _, name := range []string{"pages.jsonl", "crawl.log", p.CDXJ} {
			whole := p.Text(name)
			p.Put(name, without(whole, url(1)))
			if n, err := Mend(p.Dir); n != 1 || err != nil {
				t.Errorf("%s: %d lines are made, %v", name, n, err)
			}
			p.wantAgree(urls(0, 1, 2)...)
			was, is := slices.Sorted(strings.Lines(whole)), slices.Sorted(strings.Lines(p.Text(name)))
			if !slices.Equal(was, is) {
				t.Errorf("%s has\n%s, had\n%s", name, is, was)
			}
			p.Put(name, whole)
		}
	}
}

// If neither list has a visit, its begin is unknown, and only its index line can be rebuilt.
func TestOfAVisitThatNoListNamesNothingIsMade(t *testing.T) {
	p := newPatient(t, "gzip", 3)
	for _, name := range []string{"pages.jsonl", "crawl.log", p.CDXJ} {
		p.Put(name, without(p.Text(name), url(1)))
	}
	if n, err := Mend(p.Dir); n != 0 || err != nil {
		t.Errorf("%d lines are made, %v", n, err)
	}
}

func TestAnErrorNamesTheFile(t *testing.T) {
	p := newPatient(t, "gzip", 1)
	if err := os.Rename(p.Path("crawl.log"), p.Path("log")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(p.Path("crawl.log"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Clean(p.Dir, NewDrop(), false); err == nil || !strings.Contains(err.Error(), "crawl.log") {
		t.Error(err)
	}
	if _, err := Mend(p.Dir); err == nil || !strings.Contains(err.Error(), "crawl.log") {
		t.Error(err)
	}
}
