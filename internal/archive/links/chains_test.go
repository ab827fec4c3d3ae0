package links

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/page"
)

func chains(t *testing.T, dir string) (all []string) {
	t.Helper()
	f, err := Open(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = f.Redirects(t.Context(), func(c *Chain) error {
		text := fmt.Sprintf("%d links, %d: %s", c.Links, c.Redirects, c.URL)
		for _, s := range c.Steps {
			text += fmt.Sprintf(" %d %s", s.Status, s.To)
		}
		text += fmt.Sprintf(" = %d%s", c.Status, c.Error)
		if c.Broken {
			text += " broken"
		}
		if len(c.Steps) != c.Redirects || c.Steps[len(c.Steps)-1].To != c.End {
			t.Errorf("%+v: the steps do not lead to the end", c)
		}
		all = append(all, strings.ReplaceAll(text, site, "/"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRedirects(t *testing.T) {
	away := visit(9, "away", 301, page.Link{URL: "http://other.test/", Kind: page.Redirect})
	never := redirect(10, "never", "unknown")
	c := crawl(t,
		visit(1, "", 200, a("moved"), a("further"), a("round"), a("old")),
		visit(2, "two", 200, a("moved"), a("gone"), a("away")), visit(3, "gone", 404),
		redirect(4, "moved", "further"), redirect(5, "further", "gone"), redirect(6, "round", "and"),
		redirect(7, "and", "round"), redirect(8, "old", "two"), away, never, redirect(11, "a", "b"), redirect(12, "b", "a"))
	want := []string{
		"0 links, 2: /a 302 /b 302 /a = 0loop broken", // nothing leads there, and it is not lost
		"0 links, 2: /and 302 /round 302 /and = 0loop broken",
		"1 links, 1: /away 301 http://other.test/ = 0elsewhere",
		"0 links, 2: /b 302 /a 302 /b = 0loop broken",
		"1 links, 1: /further 302 /gone = 404 broken",
		"2 links, 2: /moved 302 /further 302 /gone = 404 broken",
		"0 links, 1: /never 302 /unknown = 0not fetched",
		"1 links, 1: /old 302 /two = 200",
		"1 links, 2: /round 302 /and 302 /round = 0loop broken",
	}
	compare(t, chains(t, c.Dir), want)
	for _, name := range []string{c.WARC, c.CDXJ} {
		if err := os.Remove(c.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := chains(t, c.Dir); len(got) < 6 || !slices.ContainsFunc(got, func(line string) bool {
		return strings.Contains(line, "/moved 302 /further 302 /gone = 404 broken")
	}) {
		t.Errorf("without WARC files\n%s", strings.Join(got, "\n"))
	}
}

func TestOrphans(t *testing.T) {
	listed := func(url string) page.Link { return page.Link{URL: site + url, Kind: page.Listed} }
	c := crawl(t,
		visit(1, "", 200, a("linked"), a("moved"), page.Link{URL: site + "feed", Kind: page.Alternate}),
		visit(2, "sitemap.xml", 200, listed("linked"), listed("alone"), listed("gone"), listed("to"), listed("old"),
			listed("fed"), listed("never")),
		visit(3, "linked", 200), visit(4, "alone", 200, a("alone")), visit(5, "gone", 404), redirect(6, "moved", "to"),
		visit(7, "to", 200), redirect(8, "old", "linked"),
		visit(9, "feed", 200, page.Link{URL: site + "fed", Kind: page.Feed}), visit(10, "fed", 200))
	var got []string
	f, err := Open(t.Context(), Config{Dir: c.Dir})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	orphan := func(o *Orphan) error {
		got = append(got, strings.ReplaceAll(fmt.Sprintf("%s %d%s %s %v", o.URL, o.Status, o.Error, o.Sitemap, o.Redirects),
			site, "/"))
		return nil
	}
	if err := f.Orphans(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	compare(t, got, []string{"/alone 200 /sitemap.xml []", "/fed 200 /sitemap.xml []", "/gone 404 /sitemap.xml []",
		"/never 0not fetched /sitemap.xml []", "/old 200 /sitemap.xml [/linked]"})
	if err := os.Remove(c.Path(c.WARC)); err != nil {
		t.Fatal(err)
	}
	if err := f.Orphans(t.Context(), orphan); !errors.Is(err, ErrNoRecords) {
		t.Errorf("without WARC files: %v", err)
	}
}
