package cdxj_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/cdxj"
	"kumo/internal/archive/export/exporttest"
	"kumo/internal/archive/export/target"
)

func maker(t testing.TB, to *target.Folder) (export.Exporter, error) {
	return cdxj.New(t.Context(), to)
}

func TestContract(t *testing.T) { exporttest.RunOfRecords(t, maker, exporttest.Damage) }

var visits = []exporttest.Visit{
	{URL: "http://b.test/", Body: "x"}, {URL: "http://a.test/", Body: "y"}, {URL: "http://b.test/", Status: 304, SameAs: 1},
	{URL: "http://c.test/", Body: "x", SameAs: 1},
}

func lines(t *testing.T, crawl string, where export.Condition) []string {
	t.Helper()
	dir := t.TempDir()
	_, err := export.Run(t.Context(), export.Config{Crawl: crawl, Dir: dir, Where: where},
		func(to *target.Folder) (export.Exporter, error) { return maker(t, to) })
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(exporttest.Tree(t, dir)["index.cdxj"]))
}

// The index of a crawl with one WARC file is that file's index without duplicate lines.
func TestIndex(t *testing.T) {
	c := exporttest.Crawl(t, visits...)
	file := filepath.Join(c.Dir, c.CDXJ)
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(strings.Lines(string(was)))
	if err := os.WriteFile(file, append(was, was...), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, c.Dir, nil); !slices.Equal(got, want) || len(got) != len(visits) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestCondition(t *testing.T) {
	c := exporttest.Crawl(t, visits...)
	got := lines(t, c.Dir, func() func(*export.Page) (bool, error) {
		return func(p *export.Page) (bool, error) { return p.URL == "http://c.test/", nil }
	})
	if len(got) != 2 || !strings.HasPrefix(got[0], "test,b)/ 20260301100000 ") || !strings.HasPrefix(got[1], "test,c)/ ") {
		t.Errorf("%q", got)
	}
}
