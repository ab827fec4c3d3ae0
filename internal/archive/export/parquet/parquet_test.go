package parquet_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/exporttest"
	"kumo/internal/archive/export/parquet"
	"kumo/internal/archive/export/target"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
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
		exporttest.Visit{URL: "http://a.test/reserved", Body: "<p>" + prose, Withheld: "tdm",
			Usage: &page.Usage{Uses: page.Uses{TDM: "n"}, Source: "header", Raw: "tdm-reservation: 1"}},
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
	if len(pages) != 4 {
		t.Fatalf("%+v", pages)
	}
	stated := parquet.Usage{TDM: "n", Source: "header", Raw: "tdm-reservation: 1"}
	if p := pages[2]; p.Usage == nil || *p.Usage != stated || p.Withheld != "tdm" || pages[0].Usage != nil {
		t.Errorf("usage %+v, withheld %q; of a page without: %+v", p.Usage, p.Withheld, pages[0].Usage)
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

// tables exports a crawl and returns its tables.
func tables(t *testing.T, crawl string, texts vfs.FS) map[string]string {
	t.Helper()
	dir := t.TempDir()
	_, err := export.Run(t.Context(), export.Config{Crawl: crawl, Dir: dir, Texts: texts},
		func(to *target.Folder) (export.Exporter, error) { return maker(t, to) })
	if err != nil {
		t.Fatal(err)
	}
	return exporttest.Tree(t, dir)
}

const (
	prose = "A sentence of the main text, which is long enough to be taken for one, stands here. And a second one, too."
	utf8  = "Content-Type: text/html; charset=utf-8\r\n"
)

func TestTextsOfTheCrawlGiveTheSameTables(t *testing.T) {
	body := "<title>T</title><h1>H</h1><p>" + prose + "</p><div class=comments><div class=comment><p>It is good.</p></div>" +
		"<div class=comment><p>It is bad.</p></div></div>"
	c := exporttest.Crawl(t, exporttest.Visit{URL: "http://a.test/", Header: utf8, Body: body, Text: prose})
	c.Put("text.jsonl", `{"url":"http://a.test/","time":"2026-03-01T10:00:00.000Z","lang":"en","title":"T",`+
		`"headline":"H","author":"","published":"","kind":"other","text":"`+prose+`",`+
		`"comments":"It is good.\nIt is bad."}`+"\n")
	made, reused := tables(t, c.Dir, nil), tables(t, c.Dir, vfs.OS)
	if all := rows[parquet.Text](t, made["texts.parquet"]); len(all) != 1 || all[0].Kind != "other" ||
		all[0].Comments != "It is good.\nIt is bad." {
		t.Errorf("%+v", all)
	}
	if !maps.Equal(made, reused) || len(rows[parquet.Text](t, made["texts.parquet"])) != 1 {
		t.Errorf("%+v\nwith text.jsonl: %+v", rows[parquet.Text](t, made["texts.parquet"]),
			rows[parquet.Text](t, reused["texts.parquet"]))
	}
}

// A text is reused only if it was extracted from the exported record or the one it refers to.
func TestOnlyTheTextOfTheSameBytesIsReused(t *testing.T) {
	const crawls = "from the crawl"
	body := "<p>" + prose
	url := func(name string) string { return "http://a.test/" + name }
	c := exporttest.Crawl(t,
		exporttest.Visit{URL: url("a-kept"), Header: utf8, Body: body + "a", Text: crawls},
		exporttest.Visit{URL: url("b-revisited"), Header: utf8, Body: body + "b", Text: crawls},
		exporttest.Visit{URL: url("c-newer"), Header: utf8, Body: body + "c", Text: crawls},
		exporttest.Visit{URL: url("d-other-url"), Header: utf8, Body: body + "d", Text: crawls},
		exporttest.Visit{URL: url("e-charset"), Header: "Content-Type: text/html; charset=latin1\r\n", Body: body + "e",
			Text: crawls},
		exporttest.Visit{URL: url("f-cut"), Header: utf8, Body: body + "f", Text: crawls, Truncated: page.Length},
		exporttest.Visit{URL: url("g-twice"), Header: utf8, Body: body + "g", Text: crawls},
		exporttest.Visit{URL: url("h-digest"), Header: utf8, Body: body + "h", Text: crawls},
		exporttest.Visit{URL: url("b-revisited"), Header: utf8, Status: 200, Body: body + "b", SameAs: 2},
		exporttest.Visit{URL: url("c-newer"), Header: utf8, Body: body + "C"},
		exporttest.Visit{URL: url("d-as-d"), Header: utf8, Body: body + "d", SameAs: 4},
		exporttest.Visit{URL: url("i-torn"), Header: utf8, Body: body + "i", Text: crawls})
	var lines []string
	for line := range strings.Lines(c.Text("text.jsonl")) {
		if strings.Contains(line, "g-twice") {
			line += strings.Replace(line, crawls, "another", 1)
		}
		lines = append(lines, line)
	}
	last := &lines[len(lines)-1]
	*last = strings.TrimSuffix(*last, "\"}\n")
	c.Put("text.jsonl", strings.Join(lines, ""))
	for line := range strings.Lines(c.Text("pages.jsonl")) {
		if strings.Contains(line, "h-digest") {
			_, digest, _ := strings.Cut(line, "sha1:")
			c.Put("pages.jsonl", strings.Replace(c.Text("pages.jsonl"), digest[:32], strings.Repeat("A", 32), 1))
		}
	}
	var reused []string
	all := rows[parquet.Text](t, tables(t, c.Dir, vfs.OS)["texts.parquet"])
	for _, x := range all {
		if x.Text == crawls {
			reused = append(reused, strings.TrimPrefix(x.URL, url("")))
		} else if !strings.HasPrefix(x.Text, prose) {
			t.Errorf("%s has %q", x.URL, x.Text)
		}
	}
	if want := []string{"a-kept", "b-revisited", "d-other-url"}; !slices.Equal(reused, want) || len(all) != 10 {
		t.Errorf("%d texts, reused %q, want %q", len(all), reused, want)
	}
	if err := os.Remove(c.Path("text.jsonl")); err != nil {
		t.Fatal(err)
	}
	if n := len(rows[parquet.Text](t, tables(t, c.Dir, vfs.OS)["texts.parquet"])); n != 10 {
		t.Errorf("%d texts without text.jsonl", n)
	}
}
