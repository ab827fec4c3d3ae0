package wacz_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/exporttest"
	"kumo/internal/archive/export/target"
	"kumo/internal/archive/export/wacz"
	"kumo/internal/state/store/warc"
)

func maker(t testing.TB, to *target.Folder) (export.Exporter, error) {
	return wacz.New(t.Context(), to, wacz.Config{Start: []string{"http://a.test/none", "http://a.test/",
		"http://a.test/b"}, Temp: t.TempDir()})
}

func TestContract(t *testing.T) { exporttest.RunOfRecords(t, maker) }

var visits = []exporttest.Visit{
	{URL: "http://a.test/", Body: "<title>Home</title>x"}, {URL: "http://a.test/b", Body: "<title>B</title>y"},
	{URL: "http://a.test/c", Body: "<title>Home</title>x", SameAs: 1},
	{URL: "http://a.test/i.png", Header: "Content-Type: image/png\r\n", Body: "png"},
	{URL: "http://a.test/b", Status: 304, SameAs: 2}, {URL: "http://a.test/gone", Status: 404, Body: "error"},
}

// files exports a crawl and returns the members of the file.
func files(t *testing.T, crawl string, where export.Condition) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	_, err := export.Run(t.Context(), export.Config{Crawl: crawl, Dir: dir, Where: where},
		func(to *target.Folder) (export.Exporter, error) { return maker(t, to) })
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, wacz.Name)
	if !wacz.IsOurs(name) {
		t.Error("it is not known again")
	}
	z, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	all := map[string][]byte{}
	for _, f := range z.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if all[f.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
		if stored := f.Method == zip.Store; stored != strings.HasSuffix(f.Name, ".gz") {
			t.Errorf("%s: method %d", f.Name, f.Method)
		}
	}
	return all
}

// index parses the index, and checks that each line points to a record.
func index(t *testing.T, all map[string][]byte) (urls []string) {
	t.Helper()
	in, err := gzip.NewReader(bytes.NewReader(all["indexes/index.cdx.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		lines = append(lines, line)
		x, err := warc.ParseIndexLine([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		file := all["archive/"+x.File]
		r, err := warc.NewReader(bytes.NewReader(file), int64(len(file)), x.File)
		if err != nil {
			t.Fatal(err)
		}
		r.SeekTo(x.Offset)
		if rec, err := r.Next(); err != nil || rec.Fields["WARC-Target-URI"] != x.URL || rec.Length != x.Length {
			t.Errorf("%s leads to %v, %v", line, rec, err)
		}
		urls = append(urls, x.URL)
	}
	if !slices.IsSorted(lines) {
		t.Error("it is not sorted")
	}
	return urls
}

func TestFile(t *testing.T) {
	c := exporttest.Crawl(t, visits...)
	all := files(t, c.Dir, nil)
	var d struct {
		Version   string `json:"wacz_version"`
		Created   string
		MainURL   string `json:"mainPageUrl"`
		Resources []struct {
			Name, Path, Hash string
			Bytes            int
		}
	}
	if err := json.Unmarshal(all["datapackage.json"], &d); err != nil {
		t.Fatal(err)
	}
	if d.Version != "1.1.1" || d.Created != "2026-03-01T10:00:05Z" || d.MainURL != "http://a.test/" ||
		len(d.Resources) != len(all)-2 {
		t.Errorf("%+v of %d files", d, len(all))
	}
	for _, r := range d.Resources {
		if sum := sha256.Sum256(all[r.Path]); r.Hash != "sha256:"+hex.EncodeToString(sum[:]) || r.Bytes != len(all[r.Path]) {
			t.Errorf("%+v", r)
		}
	}
	pages := string(all["pages/pages.jsonl"])
	if strings.Count(pages, "\n") != 4 || !strings.Contains(pages,
		`"url":"http://a.test/c","ts":"2026-03-01T10:00:02Z","title":"Home"`) {
		t.Error(pages)
	}
	was, err := os.ReadFile(filepath.Join(c.Dir, c.WARC))
	if name := "archive/" + filepath.Base(c.WARC); err != nil || !bytes.Equal(all[name], was) {
		t.Errorf("%s differs from the crawl's: %d bytes, %d (%v)", name, len(all[name]), len(was), err)
	}
	if urls := index(t, all); len(urls) != len(visits) {
		t.Errorf("%q", urls)
	}
}

// With a condition, the file has only the newest records and those that they refer to.
func TestCondition(t *testing.T) {
	c := exporttest.Crawl(t, visits...)
	all := files(t, c.Dir, func() func(*export.Page) (bool, error) {
		return func(p *export.Page) (bool, error) {
			return p.URL == "http://a.test/c" || p.URL == "http://a.test/gone", nil
		}
	})
	urls := index(t, all)
	if want := []string{"http://a.test/", "http://a.test/c", "http://a.test/gone"}; !slices.Equal(urls, want) {
		t.Errorf("%q", urls)
	}
	if pages := string(all["pages/pages.jsonl"]); strings.Count(pages, "\n") != 2 {
		t.Error(pages)
	}
}
