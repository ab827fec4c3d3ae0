package links

import (
	"context"
	"crypto/sha1"
	"fmt"
	"iter"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/state/store/recordtest"
	"kumo/internal/state/store/storetest"
)

const site = "http://example.org/"

// visit returns a response with links, at a second of the day.
func visit(n int, url string, status int, to ...page.Link) *page.Record {
	rec := storetest.Record(n)
	rec.URL, rec.Final, rec.Response.Status, rec.Page.Links = site+url, site+url, status, to
	rec.Response.Start = rec.Time
	head := fmt.Sprintf("HTTP/1.1 %d x\r\nContent-Type: text/html\r\n\r\n", status)
	var body strings.Builder
	for i, l := range to {
		fmt.Fprintf(&body, "<a href='%s'>link %d</a>", l.URL, i)
		if l.Kind == page.Redirect {
			rec.Final = l.URL
		}
	}
	res := rec.Response
	res.Raw = []byte(head + body.String())
	res.HeadLen, res.Payload = len(head), res.Raw[len(head):]
	rec.Digest = sha1.Sum(res.Payload)
	return rec
}

func a(url string) page.Link { return page.Link{URL: site + url, Kind: page.Anchor} }

func redirect(n int, url, to string) *page.Record {
	return visit(n, url, http.StatusFound, page.Link{URL: site + to, Kind: page.Redirect})
}

func crawl(t testing.TB, all ...*page.Record) *recordtest.Files {
	return recordtest.Write(t, "gzip", slices.Values(all))
}

func found(t *testing.T, dir string, ask func(*Finder, func(*Link) error) error) (all []string) {
	t.Helper()
	f, err := Open(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = ask(f, func(l *Link) error {
		text := fmt.Sprintf("%s %d%s %s %q", l.URL, l.Status, l.Error, l.From, l.Text)
		if len(l.Redirects) > 0 {
			text += fmt.Sprint(" ", l.Redirects)
		}
		all = append(all, strings.ReplaceAll(text, site, "/"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func broken(f *Finder, tell func(*Link) error) error { return f.Broken(context.Background(), tell) }

func TestBroken(t *testing.T) {
	c := crawl(t,
		visit(1, "", 200, a("gone"), a("fine"), a("moved"), a("round"), a("busy"), a("unknown")),
		visit(2, "gone", 404), visit(3, "fine", 200, a("gone")), redirect(4, "moved", "further"),
		redirect(5, "further", "gone"), redirect(6, "round", "and"), redirect(7, "and", "round"), visit(8, "busy", 429))
	want := []string{
		`/and 0loop /round "" [/round /and]`,
		`/further 404 /moved "" [/gone]`,
		`/gone 404 / "link 0"`,
		`/gone 404 /fine "link 0"`,
		`/gone 404 /further ""`,
		`/moved 404 / "link 2" [/further /gone]`,
		`/round 0loop / "link 3" [/and /round]`,
		`/round 0loop /and "" [/and /round]`,
	}
	if got := found(t, c.Dir, broken); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, name := range []string{"pages.jsonl", c.CDXJ} { // they only make it faster
		if err := os.Remove(c.Path(name)); err != nil {
			t.Fatal(err)
		}
		if got := found(t, c.Dir, broken); !slices.Equal(got, want) {
			t.Errorf("without %s\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestTo(t *testing.T) {
	c := crawl(t, visit(1, "", 200, a("b"), a("moved")), visit(2, "b", 200, a("")), redirect(3, "moved", "b"))
	want := []string{`/b 0 / "link 0"`, `/b 0 /moved ""`, `/moved 0 / "link 1" [/b]`}
	got := found(t, c.Dir, func(f *Finder, tell func(*Link) error) error { return f.To(t.Context(), site+"b", tell) })
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Links that a later visit did not find are not reported, and neither are URLs that work again.
func TestTheLastVisitCounts(t *testing.T) {
	again := visit(4, "", 200, a("b"), a("c"))
	again.Recrawl = page.Changed
	back := visit(5, "b", 200)
	back.Recrawl = page.Changed
	c := crawl(t, visit(1, "", 200, a("gone"), a("b")), visit(2, "gone", 404), visit(3, "b", 404), again, back,
		visit(6, "c", 410))
	if got, want := found(t, c.Dir, broken), []string{`/c 410 / "link 1"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFrom(t *testing.T) {
	c := crawl(t, visit(1, "", 200, a("b"), a("moved"), a("gone"), a("never"),
		page.Link{URL: "http://other/", Kind: page.Image}),
		visit(2, "b", 200), redirect(3, "moved", "b"), visit(4, "gone", 404))
	want := []string{`/b 200 / "link 0"`, `/moved 200 / "link 1" [/b]`, `/gone 404 / "link 2"`,
		`/never 0not fetched / "link 3"`,
		`http://other/ 0elsewhere / ""`}
	got := found(t, c.Dir, func(f *Finder, tell func(*Link) error) error { return f.From(t.Context(), site, tell) })
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Exceeding the limit of failed URLs is reported.
func TestOutcomesAreBounded(t *testing.T) {
	all := []*page.Record{visit(0, "", 200, a("1"), a("2"), a("3"))}
	for i := range 3 {
		all = append(all, visit(i+1, fmt.Sprint(i+1), 404))
	}
	f, err := Open(t.Context(), Config{Dir: crawl(t, all...).Dir, Outcomes: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.known.of) != 2 || len(f.Notes()) != 1 {
		t.Errorf("%d are known, and it is said: %q", len(f.known.of), f.Notes())
	}
}

// BenchmarkBroken measures the time per page, with 8 KB and 40 links; every tenth page has a broken one.
func BenchmarkBroken(b *testing.B) {
	const pages = 2000
	var all iter.Seq[*page.Record] = func(yield func(*page.Record) bool) {
		for i := range pages {
			var to []page.Link
			for n := range 40 {
				to = append(to, a(fmt.Sprintf("section/page-%d.html", (i*7+n*13)%pages)))
			}
			if i%10 == 0 {
				to[3] = a("gone")
			}
			rec := visit(i, fmt.Sprintf("section/page-%d.html", i), 200, to...)
			rec.Response.Raw = append(rec.Response.Raw, storetest.Record(i).Response.Payload...)
			rec.Response.Raw = append(rec.Response.Raw, storetest.Record(i+pages).Response.Payload...)
			rec.Response.Payload = rec.Response.Raw[rec.Response.HeadLen:]
			rec.Digest = sha1.Sum(rec.Response.Payload)
			if !yield(rec) {
				return
			}
		}
		yield(visit(pages, "gone", 404))
	}
	dir := recordtest.Write(b, "gzip", all).Dir
	b.ResetTimer()
	for b.Loop() {
		f, err := Open(b.Context(), Config{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		if err := f.Broken(b.Context(), func(*Link) error { n++; return nil }); err != nil || n != pages/10 {
			b.Fatal(n, err)
		}
		f.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/pages, "µs/page")
}
