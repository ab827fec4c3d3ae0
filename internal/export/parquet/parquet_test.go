package parquet_test

import (
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"kumo/internal/export"
	"kumo/internal/export/exporttest"
	"kumo/internal/export/parquet"
	"kumo/internal/export/target"
)

func maker(t testing.TB, to *target.Folder) (export.Exporter, error) {
	return parquet.New(t.Context(), to)
}

func TestContract(t *testing.T) { exporttest.Run(t, maker) }

func rows[T any](t *testing.T, file string) []T {
	t.Helper()
	all, err := pq.Read[T](strings.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTables(t *testing.T) {
	dir := t.TempDir()
	c := exporttest.Crawl(t,
		exporttest.Visit{URL: "http://a.test/", Body: `<title>T</title><h1>H</h1><a href=x rel=nofollow>to x</a><img src=i.png>
			<p>A sentence of the main text, which is long enough to be taken for one, stands here. And a second one, too.`},
		exporttest.Visit{URL: "http://a.test/moved", Status: 301, Header: "Location: x\r\n"},
		exporttest.Visit{URL: "http://a.test/\xff", Status: 404, Body: "<title>none"})
	_, err := export.Run(t.Context(), export.Config{Crawl: c.Dir, Dir: dir}, func(to *target.Folder) (export.Exporter,
		error) {
		return maker(t, to)
	})
	if err != nil {
		t.Fatal(err)
	}
	files := exporttest.Tree(t, dir)
	pages := rows[parquet.Page](t, files["pages.parquet"])
	if len(pages) != 3 {
		t.Fatalf("%+v", pages)
	}
	home := pages[0]
	if home.URL != "http://a.test/" || home.Host != "a.test" || home.Title != "T" || home.H1 != "H" || home.Links != 2 ||
		home.Status != 200 ||
		home.Depth == nil || home.Time.UTC().Format("15:04:05") != "10:00:00" {
		t.Errorf("%+v", home)
	}
	if moved := pages[1]; moved.Redirect != "http://a.test/x" {
		t.Errorf("%+v", moved)
	}
	links := rows[parquet.Link](t, files["links.parquet"])
	want := parquet.Link{From: "http://a.test/", To: "http://a.test/x", Kind: "a", Rel: "nofollow", NoFollow: true,
		Text: "to x"}
	if len(links) != 3 || links[0] != want || links[1].Kind != "img" || links[2].Kind != "redirect" {
		t.Errorf("%+v", links)
	}
	if texts := rows[parquet.Text](t, files["texts.parquet"]); len(texts) != 1 || !strings.Contains(texts[0].Text,
		"A sentence of") {
		t.Errorf("%+v", texts)
	}
}
