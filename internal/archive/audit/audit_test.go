package audit

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/archive/links"
	"kumo/internal/base/page"
	"kumo/internal/state/store/recordtest"
	"kumo/internal/state/store/storetest"
)

const site = "https://a.test/"

// visit returns a response of an HTML page with links, at a second of the day. Its title and description are its URL's.
func visit(n int, url string, status int, to ...page.Link) *page.Record {
	rec := storetest.Record(n)
	rec.URL, rec.Final, rec.Response.Status = site+url, site+url, status
	*rec.Page = page.Page{Type: "text/html", Sniffed: "text/html", Title: "Title of " + url,
		Description: "Text of " + url, Links: to}
	for _, l := range to {
		if l.Kind == page.Redirect {
			rec.Final = l.URL
		}
	}
	res := rec.Response
	head := fmt.Sprintf("HTTP/1.1 %d x\r\nContent-Type: text/html\r\n\r\n", status)
	res.Raw = []byte(head + "page " + url)
	res.HeadLen, res.Payload, res.Total = len(head), res.Raw[len(head):], 10*time.Millisecond
	rec.Response.Start = rec.Time
	rec.Digest = sha1.Sum(res.Payload)
	return rec
}

func a(url string) page.Link { return page.Link{URL: site + url, Kind: page.Anchor} }

func redirect(n int, url, to string) *page.Record {
	return visit(n, url, http.StatusFound, page.Link{URL: site + to, Kind: page.Redirect})
}

// with changes a record.
func with(rec *page.Record, change func(*page.Record)) *page.Record {
	change(rec)
	return rec
}

// audited returns the rows of each table, and the summary.
func audited(t *testing.T, dir string) (map[string][]string, *Summary) {
	t.Helper()
	f, err := links.Open(t.Context(), links.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := t.TempDir()
	summary, err := WriteCSV(t.Context(), f, out, t.TempDir(), Limits{Title: 20})
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][]string{}
	for i, table := range Tables {
		text, err := os.ReadFile(filepath.Join(out, table.File()))
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(text), site, "/"), "\n"), "\n")
		if all[0] != strings.Join(table.Columns, ",") {
			t.Errorf("%s begins with %s", table.Name, all[0])
		}
		if tables[table.Name] = all[1:]; summary.Tables[i].Rows != int64(len(all)-1) {
			t.Errorf("%s has %d rows, and the summary says %d", table.Name, len(all)-1, summary.Tables[i].Rows)
		}
	}
	return tables, summary
}

func check(t *testing.T, tables map[string][]string, name string, want ...string) {
	t.Helper()
	if got := tables[name]; !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAudit(t *testing.T) {
	listed := func(url string) page.Link { return page.Link{URL: site + url, Kind: page.Listed} }
	title := func(text string) func(*page.Record) {
		return func(r *page.Record) { r.Page.Title, r.Page.Description = text, text }
	}
	canonical := func(url string) func(*page.Record) {
		return func(r *page.Record) { r.Page.Canonical = url }
	}
	variants := func(all ...string) func(*page.Record) {
		return func(r *page.Record) {
			for i := 0; i < len(all); i += 2 {
				r.Page.Variants = append(r.Page.Variants, page.Variant{Lang: all[i], URL: site + all[i+1]})
			}
		}
	}
	same := func(content uint64) func(*page.Record) {
		return func(r *page.Record) { r.Content = content }
	}
	tables, summary := audited(t, recordtest.Write(t, "gzip", slices.Values([]*page.Record{
		visit(1, "", 200, a("gone"), a("moved"), a("one"), page.Link{URL: "http://a.test/plain", Kind: page.Image}),
		visit(2, "gone", 404), redirect(3, "moved", "one"), visit(4, "one", 200),
		visit(5, "map.xml", 200, listed("one"), listed("gone"), listed("moved"), listed("alone")),
		visit(6, "alone", 200),
		with(visit(7, "t1", 200), title("=same")), with(visit(8, "t2", 200), title("=same")),
		with(visit(9, "t3", 200), title("")), with(visit(10, "t4", 200), title("a title that is long")),
		with(visit(11, "t5", 200), title("a title that is longer")),
		with(visit(12, "c1", 200), canonical(site+"gone")), with(visit(13, "c2", 200), canonical(site+"moved")),
		with(visit(14, "c3", 200), canonical("https://b.test/")), with(visit(15, "c4", 200), canonical(site+"c5")),
		with(visit(16, "c5", 200), canonical(site+"one")), with(visit(17, "c6", 200), canonical(site+"hidden")),
		with(visit(18, "hidden", 200), func(r *page.Record) { r.Page.Robots.Meta = "NoIndex, nofollow" }),
		with(visit(19, "en", 200), variants("en", "en", "de", "de", "en-UK", "gone")),
		with(visit(20, "de", 200), variants("de", "de", "en", "en", "fr", "fr")),
		with(visit(21, "fr", 200), variants("de", "de")),
		with(visit(22, "d1", 200), same(7)), with(visit(23, "d2", 200), same(7)), with(visit(24, "d3", 200), same(8)),
		with(visit(25, "slow", 200), func(r *page.Record) { r.Response.Total = 3 * time.Second }),
	})).Dir)
	check(t, tables, "broken", "/gone,404,,,/,a,", "/gone,404,,,/map.xml,listed,")
	check(t, tables, "redirects", "/moved,2,1,/one,200,,false,302 /one")
	check(t, tables, "orphans", "/alone,200,,,/map.xml")
	check(t, tables, "sitemaps", "error,/gone,404,,/map.xml", "redirect,/moved,,/one,/map.xml")
	check(t, tables, "titles", "missing,/t3,,0", "repeated,/t1,'=same,5", "repeated,/t2,'=same,5",
		"long,/t5,a title that is longer,22")
	check(t, tables, "canonical", "chain,/c4,/c5,,/one", "error,/c1,/gone,404,", "noindex,/c6,/hidden,,",
		"redirect,/c2,/moved,,/one", "other host,/c3,https://b.test/,,")
	check(t, tables, "hreflang", "no link to itself,/fr,,,,",
		"invalid code,/en,en-UK,/gone,,", "error,/en,en-UK,/gone,404,")
	check(t, tables, "directives", "nofollow,/hidden,\"NoIndex, nofollow\"", "noindex,/hidden,\"NoIndex, nofollow\"")
	check(t, tables, "duplicates", "/d2,/d1,xxh64:0000000000000007,7")
	check(t, tables, "slow", "/slow,3000,0,0,9")
	check(t, tables, "insecure", "/,http://a.test/plain,img")
	if summary.URLs != 25 || summary.Pages != 23 {
		t.Errorf("%+v", summary)
	}
	if got := summary.Tables[titles].Problems; got["missing"] != 1 || got["repeated"] != 2 || got["long"] != 1 {
		t.Errorf("titles: %v", got)
	}
}

// TestWithoutRecords audits a crawl without WARC files: it writes the tables about pages, and names the missing ones.
func TestWithoutRecords(t *testing.T) {
	c := recordtest.Write(t, "gzip", slices.Values([]*page.Record{visit(1, "", 200, a("gone")), visit(2, "gone", 404)}))
	if err := os.Remove(c.Path(c.WARC)); err != nil {
		t.Fatal(err)
	}
	if _, summary := audited(t, c.Dir); summary.Pages != 1 || len(summary.Notes) != 2 {
		t.Errorf("%+v", summary)
	}
	if err := os.Remove(c.Path("pages.jsonl")); err != nil {
		t.Fatal(err)
	}
	f, err := links.Open(t.Context(), links.Config{Dir: c.Dir})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := WriteCSV(t.Context(), f, "", t.TempDir(), Limits{}); !errors.Is(err, ErrNoPages) {
		t.Errorf("without pages.jsonl: %v", err)
	}
}

func TestLanguages(t *testing.T) {
	for code, want := range map[string]bool{"en": true, "de-AT": true, "x-default": true, "zh-Hant": true,
		"zh-Hant-TW": true,
		"es-419":     true, "EN-us": true, "en-UK": false, "en_US": false, "": false, "english": false, "xx": false,
		"en-EU": false, "de-AT-x": false, "uk": true} {
		if got := validLanguage(code); got != want {
			t.Errorf("%q: %v", code, got)
		}
	}
}

func TestDirectives(t *testing.T) {
	for text, want := range map[string]directiveSet{"": {}, "index, follow": {}, "none": {true, true},
		"noindex,nofollow": {true, true}, "googlebot: noindex": {true, false}, "NOFOLLOW": {false, true},
		"max-snippet:-1": {}} {
		if got := directivesOf(text); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
