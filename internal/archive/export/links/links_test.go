package links_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/exporttest"
	"kumo/internal/archive/export/links"
	"kumo/internal/archive/export/target"
)

func maker(t testing.TB, to *target.Folder) (export.Exporter, error) {
	return links.New(t.Context(), to, 0, t.TempDir())
}

func TestContract(t *testing.T) { exporttest.RunOfRecords(t, maker) }

func made(t *testing.T, visits ...exporttest.Visit) (nodes, edges string, r *export.Report) {
	t.Helper()
	dir := t.TempDir()
	r, err := export.Run(t.Context(), export.Config{Crawl: exporttest.Crawl(t, visits...).Dir, Dir: dir},
		func(to *target.Folder) (export.Exporter, error) { return maker(t, to) })
	if err != nil {
		t.Fatal(err)
	}
	all := exporttest.Tree(t, dir)
	return all[links.Nodes], all[links.Edges], r
}

func TestGraph(t *testing.T) {
	nodes, edges, r := made(t,
		exporttest.Visit{URL: "http://a.test/", Body: `<a href=b>b</a><a href=b#x>b again</a><a href=/>home</a><img src=i.png><a href=http://z.test/>out</a><a href=moved>m</a><a href=robots.txt>r</a>`},
		exporttest.Visit{URL: "http://a.test/moved", Status: 301, Header: "Location: /b\r\n"},
		exporttest.Visit{URL: "http://a.test/b", Body: `<a href="/">home</a><a href=i.png>picture</a><a href=0>out</a>`},
		exporttest.Visit{URL: "http://a.test/robots.txt", Header: "Content-Type: text/plain\r\n", Body: "User-agent: *"},
		exporttest.Visit{URL: "http://a.test/i.png", Header: "Content-Type: image/png\r\n", Body: "png"})
	if want := "0\thttp://a.test/\n1\thttp://a.test/b\n2\thttp://a.test/i.png\n3\thttp://a.test/moved\n"; nodes != want {
		t.Errorf("%s", nodes)
	}
	if want := "0\t1\n0\t3\n1\t0\n1\t2\n3\t1\n"; edges != want {
		t.Errorf("%s", edges)
	}
	if len(r.Notes) != 1 || r.Notes[0] != "3 links omitted: their targets are not exported" {
		t.Errorf("%q", r.Notes)
	}
}

// Random graphs are exported unchanged.
func TestRandom(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	const pages = 40
	var visits []exporttest.Visit
	want := map[string]bool{}
	name := func(n int) string { return fmt.Sprintf("http://h%d.test/%d", n%7, n) }
	for n := range pages {
		body := "<p>"
		for range random.IntN(20) {
			to := random.IntN(pages + 10)
			body += "<a href=" + name(to) + ">x</a>"
			if to < pages && to != n {
				want[name(n)+" "+name(to)] = true
			}
		}
		visits = append(visits, exporttest.Visit{URL: name(n), Body: body})
	}
	nodes, edges, _ := made(t, visits...)
	urls := map[string]string{}
	for line := range strings.Lines(nodes) {
		number, url, _ := strings.Cut(strings.TrimSpace(line), "\t")
		urls[number] = url
	}
	got := 0
	for line := range strings.Lines(edges) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if got++; !want[urls[from]+" "+urls[to]] {
			t.Errorf("seed %d: there is an edge %s from %s to %s", seed, line, urls[from], urls[to])
		}
	}
	if got != len(want) || len(urls) != pages {
		t.Errorf("seed %d: %d edges of %d, %d nodes", seed, got, len(want), len(urls))
	}
}
