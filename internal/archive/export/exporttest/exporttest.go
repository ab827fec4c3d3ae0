// Package exporttest checks that export formats fulfill their contract, and creates small crawls for their tests.
package exporttest

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/captures"
	"kumo/internal/archive/export/target"
	"kumo/internal/base/page"
	"kumo/internal/state/store/recordtest"
	"kumo/internal/state/store/storetest"
)

// A Visit is a visit of a test crawl.
type Visit struct {
	URL       string
	Status    int    // 200 if 0
	Header    string // header fields, each with its \r\n; "Content-Type: text/html\r\n" if ""
	Body      string
	SameAs    int // number of the visit with the same body, from 1; 0: none
	Truncated page.Truncation
	Text      string // main text of the body in text.jsonl, as of a UTF-8 body; "" if it has none
	Rendered  string // document after the page's scripts; "" if it was not rendered
	Usage     *page.Usage
	Withheld  string
}

// Crawl creates the folder of a crawl with visits, one per second.
func Crawl(t testing.TB, visits ...Visit) *recordtest.Files {
	t.Helper()
	var all []*page.Record
	return recordtest.Write(t, "gzip", func(yield func(*page.Record) bool) {
		for n, v := range visits {
			rec := record(n, v)
			if v.SameAs > 0 {
				first := all[v.SameAs-1]
				rec.Revisit = &page.Ref{URL: first.URL, Time: first.Response.Start, ID: first.Location.ID,
					Chunked: first.Location.Chunked}
				rec.Digest = first.Digest
			}
			all = append(all, rec)
			if !yield(rec) {
				return
			}
		}
	})
}

// Many is like Crawl for many visits that do not refer to each other. It does not hold them in memory.
func Many(t testing.TB, count int, visit func(n int) Visit) *recordtest.Files {
	t.Helper()
	return recordtest.Write(t, "gzip", func(yield func(*page.Record) bool) {
		for n := range count {
			if !yield(record(n, visit(n))) {
				return
			}
		}
	})
}

func record(n int, v Visit) *page.Record {
	rec := storetest.Record(n)
	if v.Status == 0 {
		v.Status = 200
	}
	if v.Header == "" {
		v.Header = "Content-Type: text/html\r\n"
	}
	rec.URL, rec.Final, rec.From, rec.Revisit, rec.Failure = v.URL, v.URL, "", nil, page.None
	rec.Time = time.Date(2026, 3, 1, 10, 0, n, 0, time.UTC)
	res := rec.Response
	res.URL, res.Status, res.Start, res.Truncated = v.URL, v.Status, rec.Time, v.Truncated
	head := fmt.Sprintf("HTTP/1.1 %d x\r\n%s\r\n", v.Status, v.Header)
	res.Raw = []byte(head + v.Body)
	res.HeadLen, res.Payload, res.Body = len(head), res.Raw[len(head):], res.Raw[len(head):]
	res.Header = nil
	_, declared, _ := strings.Cut(v.Header, "Content-Type: ")
	declared, _, _ = strings.Cut(declared, "\r\n")
	declared, _, _ = strings.Cut(declared, ";")
	rec.Page, rec.Text = &page.Page{Type: declared}, nil
	if v.Text != "" {
		rec.Page.Charset, rec.Text = "utf-8", &page.MainText{Text: v.Text}
	}
	if v.Rendered != "" {
		rec.Rendering = &page.Rendering{HTML: []byte(v.Rendered), Requests: 1, Complete: true, Took: time.Second}
	}
	rec.Usage, rec.Withheld = v.Usage, v.Withheld
	rec.Digest = sha1.Sum(res.Payload)
	return rec
}

// Tree returns the files of a folder by name, without kumo's own.
func Tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && name == target.PrivateDir {
				return fs.SkipDir
			}
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A Maker creates the exporter under test.
type Maker func(t testing.TB, to *target.Folder) (export.Exporter, error)

// Run tests a format.
func Run(t *testing.T, maker Maker) {
	RunOfRecords(t, maker)
	for name, test := range map[string]func(*testing.T, Maker){
		"the newest good answer":    newest,
		"bodies from other records": revisits,
		"a condition":               where,
		"rendered pages":            rendered,
	} {
		t.Run(name, func(t *testing.T) { test(t, maker) })
	}
}

// Damage is the test that does not apply to formats which do not read records.
const Damage = "records that cannot be read"

// RunOfRecords tests a format with records, links or locations instead of texts. Tests named in skipped are skipped.
func RunOfRecords(t *testing.T, maker Maker, skipped ...string) {
	for name, test := range map[string]func(*testing.T, Maker){
		"the same bytes each time":                 repeats,
		"an interrupted export is repeated":        ends,
		"nothing is written outside":               staysInside,
		Damage:                                     damaged,
		"stale files are removed":                  removesStale,
		"a crawl without records":                  noRecords,
		"the context ends it":                      cancels,
		"a crawl without pages":                    empty,
		"a full disk":                              full,
		"hostile titles":                           titles,
		"a condition, repeated":                    whereAgain,
		"the number of goroutines does not matter": workers,
	} {
		if !slices.Contains(skipped, name) {
			t.Run(name, func(t *testing.T) { test(t, maker) })
		}
	}
}

// visits has visits of all kinds.
var visits = []Visit{
	{URL: "http://a.test/", Body: `<a href="b.html">b</a> <img src="//b.test/i.png"> first`},
	{URL: "http://a.test/b.html", Body: "<p>second"},
	{URL: "http://b.test/i.png", Header: "Content-Type: image/png\r\n", Body: "\x89PNG\r\n\x1a\n"},
	{URL: "http://a.test/gone", Status: 404, Body: "error"},
	{URL: "http://a.test/moved", Status: 302, Header: "Location: /b.html\r\n"},
	{URL: "http://a.test/empty"},
	{URL: "http://a.test/chunked", Header: "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n",
		Body: "5\r\nthird\r\n0\r\n\r\n"},
}

// hostile has visits whose URLs are bad file names.
var hostile = []Visit{
	{URL: "http://a.test/..%2F..%2Fetc/passwd", Body: "1"}, {URL: "http://a.test/%2e%2e/%00/x", Body: "2"},
	{URL: `http://a.test/..\..\x`, Body: "3"},
	{URL: "http://a.test/C:/x", Body: "4"}, {URL: "http://a.test//etc/passwd", Body: "5"},
	{URL: "http://a.test/con", Body: "6"},
	{URL: "http://a.test/.kumo/export/files", Body: "7"}, {URL: "http://a.test/" + strings.Repeat("x", 3000), Body: "8"},
	{URL: "http://a.test/" + strings.Repeat("y/", 1500), Body: "9"}, {URL: "http://.kumo/x", Body: "10"},
	{URL: "http://../x", Body: "11"},
	{URL: "http://a.test/=cmd|'x'!A1", Body: "=cmd|' /C calc'!A0"}, {URL: "ftp://a.test/x", Body: "12"},
	{URL: "http://[::1]:80/x", Body: "13"},
	{URL: "http://a.test/a", Body: "14"}, {URL: "http://a.test/A", Body: "15"}, {URL: "http://a.test/a/b", Body: "16"},
	{URL: "http://a.test/a.html/b", Body: "17"},
	{URL: "http://a.test/%EF%BC%8E%EF%BC%8E/x", Body: "18"}, {URL: "http://a.test/%E2%80%AEgpj.exe", Body: "19"},
	{URL: "http://a.test/\xff", Body: "20"},
}

func run(t testing.TB, crawl, dir string, maker Maker) (*export.Report, error) {
	t.Helper()
	return export.Run(t.Context(), export.Config{Crawl: crawl, Dir: dir, Temp: t.TempDir()},
		func(to *target.Folder) (export.Exporter, error) {
			return maker(t, to)
		})
}

func must(t testing.TB, crawl, dir string, maker Maker) *export.Report {
	t.Helper()
	r, err := run(t, crawl, dir, maker)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// exported exports a crawl into a new folder, and returns the files.
func exported(t testing.TB, crawl *recordtest.Files, maker Maker) map[string]string {
	t.Helper()
	dir := t.TempDir()
	must(t, crawl.Dir, dir, maker)
	return Tree(t, dir)
}

func repeats(t *testing.T, maker Maker) {
	c := Crawl(t, slices.Concat(visits, hostile)...)
	one := t.TempDir()
	must(t, c.Dir, one, maker)
	if a, b := Tree(t, one), exported(t, c, maker); len(a) == 0 || !maps.Equal(a, b) {
		t.Errorf("%d files, then %d, or different ones", len(a), len(b))
	}
	if r := must(t, c.Dir, one, maker); r.Written != 0 || r.Removed != 0 || r.Same == 0 {
		t.Errorf("repeated: %+v", r)
	}
}

var errEnd = errors.New("the end")

// An endingExporter ends the export before its n-th page.
type endingExporter struct {
	export.Exporter
	left int
}

func (e *endingExporter) Write(ctx context.Context, p *export.Page) error {
	if e.left--; e.left < 0 {
		return errEnd
	}
	return e.Exporter.Write(ctx, p)
}

func (e *endingExporter) SetArchive(a *captures.Archive) {
	if x, takes := e.Exporter.(export.ArchiveExporter); takes {
		x.SetArchive(a)
	}
}

func (e *endingExporter) Plan(ctx context.Context, p *export.Page) error {
	if x, plans := e.Exporter.(export.Planner); plans {
		return x.Plan(ctx, p)
	}
	return nil
}

func (e *endingExporter) FinishPlan(ctx context.Context) error {
	if x, plans := e.Exporter.(export.Planner); plans {
		return x.FinishPlan(ctx)
	}
	return nil
}

// An endingPreparer is an endingExporter that is also a Preparer.
type endingPreparer struct{ endingExporter }

func (e *endingPreparer) Prepare() export.PrepareFunc { return e.Exporter.(export.Preparer).Prepare() }

func ends(t *testing.T, maker Maker) {
	c := Crawl(t, visits...)
	dir, want := t.TempDir(), exported(t, c, maker)
	for n := range visits {
		_, err := run(t, c.Dir, dir, func(t testing.TB, to *target.Folder) (export.Exporter, error) {
			e, err := maker(t, to)
			if _, prepares := e.(export.Preparer); prepares {
				return &endingPreparer{endingExporter{e, n}}, err
			}
			return &endingExporter{e, n}, err
		})
		if !errors.Is(err, errEnd) {
			t.Fatal(err)
		}
		for name, text := range Tree(t, dir) {
			if want[name] != text {
				t.Errorf("ended before page %d: half of %s exists: %q", n, name, text)
			}
		}
	}
	must(t, c.Dir, dir, maker)
	if !maps.Equal(Tree(t, dir), want) {
		t.Error("the repeated export has other files")
	}
}

func staysInside(t *testing.T, maker Maker) {
	c := Crawl(t, hostile...)
	parent := t.TempDir()
	dir := filepath.Join(parent, "in", "deep")
	must(t, c.Dir, dir, maker)
	for _, at := range []string{parent, filepath.Join(parent, "in")} {
		if entries, err := os.ReadDir(at); err != nil || len(entries) != 1 {
			t.Errorf("in %s: %v, %v", at, entries, err)
		}
	}
	for name := range Tree(t, dir) {
		if !filepath.IsLocal(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
			t.Errorf("there is a file %q", name)
		}
	}
}

func damaged(t *testing.T, maker Maker) {
	c := Crawl(t, visits...)
	c.Flip(c.Record("response", 1))
	dir := t.TempDir()
	r := must(t, c.Dir, dir, maker)
	if r.Unreadable != 1 || len(r.Notes) == 0 || !strings.Contains(r.Notes[0], "cannot read") {
		t.Errorf("%+v", r)
	}
}

func removesStale(t *testing.T, maker Maker) {
	dir := t.TempDir()
	must(t, Crawl(t, visits...).Dir, dir, maker)
	few := Crawl(t, visits[0])
	must(t, few.Dir, dir, maker)
	if got, want := Tree(t, dir), exported(t, few, maker); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", slices.Collect(maps.Keys(got)), slices.Collect(maps.Keys(want)))
	}
}

func noRecords(t *testing.T, maker Maker) {
	if _, err := run(t, t.TempDir(), t.TempDir(), maker); err == nil {
		t.Error("no error")
	}
}

func cancels(t *testing.T, maker Maker) {
	c := Crawl(t, visits...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := export.Run(ctx, export.Config{Crawl: c.Dir, Dir: t.TempDir()}, func(to *target.Folder) (export.Exporter,
		error) {
		return maker(t, to)
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A later visit replaces an earlier one unless it is an error that does not concern the page.
func newest(t *testing.T, maker Maker) {
	c := Crawl(t, Visit{URL: "http://a.test/", Body: "<title>old text"},
		Visit{URL: "http://a.test/", Body: "<title>new text"},
		Visit{URL: "http://a.test/", Status: 503, Body: "<title>error text"},
		Visit{URL: "http://a.test/x", Body: "<title>lost text"},
		Visit{URL: "http://a.test/x", Status: 404, Body: "no text"})
	dir := t.TempDir()
	r := must(t, c.Dir, dir, maker)
	all := ""
	for _, text := range Tree(t, dir) {
		all += text
	}
	for _, wrong := range []string{"old text", "error text", "lost text"} {
		if strings.Contains(all, wrong) {
			t.Errorf("output contains %q:\n%s", wrong, all)
		}
	}
	if !strings.Contains(all, "new text") || r.URLs == 0 {
		t.Errorf("%+v\n%s", r, all)
	}
}

// A revisit has the body of the record that it refers to, at the same URL or another.
func revisits(t *testing.T, maker Maker) {
	const text = "<p>this is said once"
	c := Crawl(t, Visit{URL: "http://a.test/1", Body: text}, Visit{URL: "http://a.test/2", Body: text, SameAs: 1},
		Visit{URL: "http://a.test/1", Status: 304, SameAs: 1}, Visit{URL: "http://a.test/2", Status: 304, SameAs: 1})
	plain := Crawl(t, Visit{URL: "http://a.test/1", Body: "other"}, Visit{URL: "http://a.test/2", Body: "other"},
		Visit{URL: "http://a.test/1", Body: text}, Visit{URL: "http://a.test/2", Body: text})
	if a, b := exported(t, c, maker), exported(t, plain, maker); !maps.Equal(a, b) {
		t.Errorf("%q\nwith records of their own: %q", a, b)
	}
}

// A rendered page is read from its document after scripts, unless a later visit did not render it.
func rendered(t *testing.T, maker Maker) {
	const shell = "<title>before scripts</title><div id=root></div>"
	document := func(text string) string {
		return "<!DOCTYPE html><html><head><title>" + text + "</title></head><body><p>" + text + "</p></body></html>"
	}
	c := Crawl(t, Visit{URL: "http://a.test/1", Body: shell, Rendered: document("walnut")},
		Visit{URL: "http://a.test/2", Body: shell, SameAs: 1, Rendered: document("harbour")},
		Visit{URL: "http://a.test/3", Body: shell + "3", Rendered: document("compass")},
		Visit{URL: "http://a.test/3", Status: 304, SameAs: 3},
		Visit{URL: "http://a.test/4", Body: shell + "4", Rendered: document("stale document")},
		Visit{URL: "http://a.test/4", Body: document("lantern")})
	all := strings.Join(slices.Collect(maps.Values(exported(t, c, maker))), "")
	for _, want := range []string{"walnut", "harbour", "compass", "lantern"} {
		if !strings.Contains(all, want) {
			t.Errorf("output does not contain %q", want)
		}
	}
	for _, wrong := range []string{"before scripts", "stale document"} {
		if strings.Contains(all, wrong) {
			t.Errorf("output contains %q", wrong)
		}
	}
	if t.Failed() {
		t.Log(all)
	}
}

// A crawl without good answers can be exported.
func empty(t *testing.T, maker Maker) {
	c := Crawl(t, Visit{URL: "http://a.test/", Status: 503, Body: "busy"})
	one := t.TempDir()
	if r := must(t, c.Dir, one, maker); r.URLs != 0 {
		t.Errorf("%+v", r)
	}
	if a, b := Tree(t, one), exported(t, c, maker); !maps.Equal(a, b) {
		t.Errorf("%q, then %q", a, b)
	}
}

// A limitedWriter fails after a number of bytes.
type limitedWriter struct {
	to   io.Writer
	left *int
}

func (s *limitedWriter) Write(p []byte) (int, error) {
	if len(p) > *s.left {
		n, err := s.to.Write(p[:*s.left])
		*s.left = 0
		return n, errors.Join(err, syscall.ENOSPC)
	}
	*s.left -= len(p)
	return s.to.Write(p)
}

// A full disk leaves only complete files, and the export can be resumed.
func full(t *testing.T, maker Maker) {
	c := Crawl(t, visits...)
	dir, want := t.TempDir(), exported(t, c, maker)
	sum := 0
	for _, text := range want {
		sum += len(text)
	}
	failed := 0
	for _, room := range []int{0, 1, sum / 3, sum / 2, sum - 1} {
		_, err := run(t, c.Dir, dir, func(t testing.TB, to *target.Folder) (export.Exporter, error) {
			left := room
			to.WrapWriter = func(w io.Writer) io.Writer { return &limitedWriter{w, &left} }
			return maker(t, to)
		})
		if errors.Is(err, syscall.ENOSPC) {
			failed++
		} else if err != nil {
			t.Fatal(err)
		}
		for name, text := range Tree(t, dir) {
			if want[name] != text {
				t.Errorf("after %d bytes, half of %s exists: %d bytes of %d", room, name, len(text), len(want[name]))
			}
		}
	}
	must(t, c.Dir, dir, maker)
	if !maps.Equal(Tree(t, dir), want) || failed == 0 {
		t.Errorf("the repeated export has other files, or no disk was full: %d", failed)
	}
}

// Titles are hostile titles of pages.
var Titles = []string{"=cmd|' /C calc'!A0", "+1+1", "-2", "@SUM(1)", "\uFF1D1+1", "\t=1", "a\x00b", "a\x1b[31mred",
	"\u202Egpj.exe", "\xff\xfe", "\uFFFE\uFFFF",
	"\"quoted\", 'twice', \\", "a\nb", "---", "null", "a: b # c", "| a | b |", "*em* _x_ `c` [l](u) &amp;amp; &lt;b&gt;",
	"\u2028line", strings.Repeat("x", 1<<20)}

// A page that is too long for its format may be omitted, but does not affect others.
func titles(t *testing.T, maker Maker) {
	var all []Visit
	for n, title := range Titles {
		all = append(all, Visit{URL: fmt.Sprintf("http://a.test/%d", n),
			Body: "<html lang=\"" + title[:min(9, len(title))] + "\"><title>" + title + "</title><meta name=description " +
				"content=\"" + title + "\"><h1>" + title + "</h1><p>" + title +
				" is what this page says, and a sentence that is long enough stands behind it.<p><a href=\"" + title + "\">" +
				title + "</a>"})
	}
	c := Crawl(t, all...)
	one := t.TempDir()
	if r := must(t, c.Dir, one, maker); r.URLs < int64(len(all)-1) {
		t.Errorf("of %d: %+v", len(all), r)
	}
	if !maps.Equal(Tree(t, one), exported(t, c, maker)) {
		t.Error("other bytes on repetition")
	}
}

// With a condition, the export equals that of a crawl with only the matching pages.
func where(t *testing.T, maker Maker) {
	narrows(t, maker, Crawl(t, visits...), Crawl(t, visits[0], visits[1]))
}

// With a condition, repeated exports are equal.
func whereAgain(t *testing.T, maker Maker) {
	c := Crawl(t, visits...)
	narrows(t, maker, c, c)
}

func narrows(t *testing.T, maker Maker, c, few *recordtest.Files) {
	t.Helper()
	one, two := t.TempDir(), t.TempDir()
	narrowed := func(crawl, dir string) *export.Report {
		r, err := export.Run(t.Context(), export.Config{Crawl: crawl, Dir: dir, Temp: t.TempDir(),
			Where: func() func(*export.Page) (bool, error) {
				return func(p *export.Page) (bool, error) {
					resp, err := p.ReadResponse()
					return err == nil && (strings.Contains(string(resp.Body), "first") || strings.Contains(string(resp.Body),
						"second")), err
				}
			}}, func(to *target.Folder) (export.Exporter, error) { return maker(t, to) })
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := narrowed(c.Dir, one); r.Unmatched != int64(len(visits)-2) {
		t.Errorf("%+v", r)
	}
	narrowed(few.Dir, two)
	if a, b := Tree(t, one), Tree(t, two); !maps.Equal(a, b) {
		t.Errorf("%q\nfor a crawl of only these pages: %q", a, b)
	}
}

func workers(t *testing.T, maker Maker) {
	var many []Visit
	for n := range 100 {
		many = append(many, Visit{URL: fmt.Sprintf("http://a.test/%d", n),
			Body: fmt.Sprintf("<title>%d</title><a href=%d>x</a> %s", n, n+1, strings.Repeat("w ", n*n))})
	}
	c := Crawl(t, many...)
	var trees []map[string]string
	for _, n := range []int{1, 7} {
		dir := t.TempDir()
		_, err := export.Run(t.Context(), export.Config{Crawl: c.Dir, Dir: dir, Temp: t.TempDir(), Workers: n},
			func(to *target.Folder) (export.Exporter, error) { return maker(t, to) })
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, Tree(t, dir))
	}
	if !maps.Equal(trees[0], trees[1]) {
		t.Error("seven goroutines write other files than one")
	}
}
