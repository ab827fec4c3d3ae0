package markdown_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/exporttest"
	"kumo/internal/archive/export/markdown"
	"kumo/internal/archive/export/target"
)

func maker(t testing.TB, to *target.Folder) (export.Exporter, error) {
	return markdown.New(to, t.TempDir())
}

func TestContract(t *testing.T) { exporttest.RunOfRecords(t, maker) }

const prose = "<p>A sentence of the main text, which is long enough to be taken for one, <em>stands</em> here. And a " +
	"second one, too."

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	c := exporttest.Crawl(t,
		exporttest.Visit{URL: "http://a.test/", Body: `<html lang=en><title>T "x" \</title><meta name=author content="A: B"><h1>H *1*</h1>` + prose},
		exporttest.Visit{URL: "http://a.test/p", Body: "<title>\u202Ea\tb</title>" + prose},
		exporttest.Visit{URL: "http://a.test/P", Body: prose},
		exporttest.Visit{URL: "http://a.test/picture", Body: "<a href=/><img src=i.png></a>"},
		exporttest.Visit{URL: "http://a.test/gone", Status: 404, Body: prose},
		exporttest.Visit{URL: "http://a.test/i.png", Header: "Content-Type: image/png\r\n", Body: prose},
		exporttest.Visit{URL: "http://a.test/x.txt", Header: "Content-Type: text/html\r\n", Body: "\x89PNG\r\n\x1a\n"})
	r, err := export.Run(t.Context(), export.Config{Crawl: c.Dir, Dir: dir}, func(to *target.Folder) (export.Exporter,
		error) {
		return maker(t, to)
	})
	if err != nil {
		t.Fatal(err)
	}
	all := exporttest.Tree(t, dir)
	files := slices.Sorted(maps.Keys(all))
	if len(files) != 3 || files[0] != "a.test/P.md" || files[1] != "a.test/index.md" ||
		!strings.HasPrefix(files[2], "a.test/p~") {
		t.Fatalf("%q", files)
	}
	if want := `---
url: "http://a.test/"
title: "T \"x\" \\"
language: "en"
author: "A: B"
kind: "other"
fetched: "2026-03-01T10:00:00Z"
---

# H \*1\*

A sentence of the main text, which is long enough to be taken for one, *stands* here. And a second one, too.
`; all["a.test/index.md"] != want {
		t.Errorf("%s", all["a.test/index.md"])
	}
	if !strings.Contains(all[files[2]], `title: "\u202Ea b"`) {
		t.Errorf("%s", all[files[2]])
	}
	if len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "left out: 2 pages without a main text") {
		t.Errorf("%q", r.Notes)
	}
}
