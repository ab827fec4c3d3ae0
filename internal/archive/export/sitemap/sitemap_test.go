package sitemap_test

import (
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/exporttest"
	"kumo/internal/archive/export/sitemap"
	"kumo/internal/archive/export/target"
)

func maker(limits sitemap.Limits) exporttest.Maker {
	return func(t testing.TB, to *target.Folder) (export.Exporter, error) {
		return sitemap.New(to, t.TempDir(), limits)
	}
}

func TestContract(t *testing.T) {
	exporttest.RunOfRecords(t, maker(sitemap.Protocol))
}

func made(t *testing.T, limits sitemap.Limits, visits ...exporttest.Visit) map[string]string {
	t.Helper()
	dir := t.TempDir()
	_, err := export.Run(t.Context(), export.Config{Crawl: exporttest.Crawl(t, visits...).Dir, Dir: dir},
		func(to *target.Folder) (export.Exporter, error) { return maker(limits)(t, to) })
	if err != nil {
		t.Fatal(err)
	}
	all := exporttest.Tree(t, dir)
	for name, text := range all {
		d := xml.NewDecoder(strings.NewReader(text))
		for {
			if _, err := d.Token(); err != nil {
				if err.Error() != "EOF" {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
		}
	}
	return all
}

func TestWhatIsListed(t *testing.T) {
	const page = "<title>x</title>"
	all := made(t, sitemap.Protocol,
		exporttest.Visit{URL: "https://a.test/", Body: page,
			Header: "Content-Type: text/html\r\nLast-Modified: Mon, 02 Feb 2026 10:00:00 GMT\r\n"},
		exporttest.Visit{URL: "https://a.test/future", Body: page,
			Header: "Content-Type: text/html\r\nLast-Modified: Mon, 02 Feb 2036 10:00:00 GMT\r\n"},
		exporttest.Visit{URL: "https://a.test/q?a=1&b=%272%27", Body: page + "<link rel=canonical href=\"?a=1&amp;b='2'\">"},
		exporttest.Visit{URL: "https://a.test/copy", Body: page + "<link rel=canonical href=/>"},
		exporttest.Visit{URL: "https://a.test/hidden", Body: page + "<meta name=robots content=noindex>"},
		exporttest.Visit{URL: "https://a.test/gone", Status: 404, Body: page},
		exporttest.Visit{URL: "https://a.test/i.png", Body: "\x89PNG\r\n\x1a\n", Header: "Content-Type: image/png\r\n"},
		exporttest.Visit{URL: "http://a.test/", Body: page}, exporttest.Visit{URL: "http://a.test:8080/", Body: page},
		exporttest.Visit{URL: "https://a.test/" + strings.Repeat("x", 2040), Body: page})
	want := []string{"http/a.test+8080/sitemap.xml", "http/a.test/sitemap.xml", "https/a.test/sitemap.xml"}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	text := all["https/a.test/sitemap.xml"]
	for _, part := range []string{"<url><loc>https://a.test/</loc><lastmod>2026-02-02T10:00:00Z</lastmod></url>\n",
		"<url><loc>https://a.test/future</loc></url>\n",
		"<loc>https://a.test/q?a=1&#38;b=%272%27</loc>"} {
		if !strings.Contains(text, part) {
			t.Errorf("%s\nhas not %s", text, part)
		}
	}
	if n := strings.Count(text, "<url>"); n != 3 {
		t.Errorf("%d URLs", n)
	}
}

// Entries beyond the limits on number and size go to further files.
func TestLimits(t *testing.T) {
	var visits []exporttest.Visit
	for n := range 10 {
		visits = append(visits, exporttest.Visit{URL: fmt.Sprintf("http://a.test/%d", n), Body: "<p>x"})
	}
	for _, limits := range []sitemap.Limits{{URLs: 4, Bytes: 1 << 20}, {URLs: 100, Bytes: 250}} {
		all := made(t, limits, visits...)
		if !strings.Contains(all["http/a.test/sitemap.xml"],
			"<sitemap><loc>http://a.test/sitemap-00001.xml</loc></sitemap>\n") {
			t.Fatalf("%v: %q", limits, all)
		}
		urls := 0
		for name, text := range all {
			n := strings.Count(text, "<url>")
			if urls += n; n > limits.URLs || n > 1 && len(text) > limits.Bytes {
				t.Errorf("%v: %s has %d URLs in %d bytes", limits, name, n, len(text))
			}
		}
		if parts := strings.Count(all["http/a.test/sitemap.xml"], "<sitemap>"); urls != 10 || parts != len(all)-1 ||
			parts < 3 {
			t.Errorf("%v: %d URLs in %d files, %d of them listed", limits, urls, len(all), parts)
		}
	}
}
