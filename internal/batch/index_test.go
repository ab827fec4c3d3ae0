package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store/xml"
)

// xmlSink returns a sink for XML records.
func xmlSink(t *testing.T, p place.Place, part int) *Sink {
	t.Helper()
	job := &Job{Name: "xml", Route: func([]byte, []byte) Route { return Route{Folder: "xml", Format: XML} }}
	s := NewSink(t.Context(), p, "work", part, job)
	t.Cleanup(s.Abort)
	return s
}

func emitPage(t *testing.T, s *Sink, url, headline string) {
	t.Helper()
	r := xml.Record{URL: url, Fetched: time.Unix(1e9, 0), Directory: "d", Headline: headline, Content: "text"}
	if err := s.Emit([]byte(url), xml.Append([]byte{byte(KindPage)}, &r)); err != nil {
		t.Fatal(err)
	}
}

func TestAnIndexHasEveryPageOfAllParts(t *testing.T) {
	const seed = 1
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	p, err := file.Open(t.TempDir(), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	sinks := []*Sink{xmlSink(t, p, 0), xmlSink(t, p, 7), xmlSink(t, p, 12)}
	url := func(i int) string { return fmt.Sprintf("http://s%d.example.co.uk/%06d", i/1000, i) }
	n := 5000
	if testing.Short() {
		n = 1000
	}
	for i := range n {
		headline := fmt.Sprintf("headline\x1b\n %d ü %.*d", i, random.IntN(300), 0)
		emitPage(t, sinks[random.IntN(len(sinks))], url(2*i), headline)
	}
	var parts []string
	for _, s := range sinks {
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if parts, err = indexParts(t.Context(), p, "work/xml"); err != nil || len(parts) != len(sinks) {
		t.Fatalf("%q, %v", parts, err)
	}
	sites, err := mergeIndex(t.Context(), p, parts, "work/xml/index.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if len(sites) != 1 || sites["example.co.uk"] != n {
		t.Errorf("sites %v", sites)
	}
	data, err := place.ReadFile(t.Context(), p, "work/xml/index.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	if len(lines) != n || bytes.Contains(data, []byte("\x1b")) {
		t.Errorf("%d lines", len(lines))
	}
	for i := range n {
		e, err := FindEntry(t.Context(), p, "work/xml/index.jsonl", url(2*i))
		if err != nil {
			t.Fatal(err)
		}
		got := recordAt(t.Context(), t, p, e)
		if got.URL != url(2*i) || e.URL != got.URL || len(e.Headline) > maxHeadline {
			t.Fatalf("%+v leads to %+v", e, got)
		}
		if e, err := FindEntry(t.Context(), p, "work/xml/index.jsonl", url(2*i+1)); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%+v, %v", e, err)
		}
	}
	for _, not := range []string{"", "a", "http://", "zzz", url(2*n + 2)} {
		if _, err := FindEntry(t.Context(), p, "work/xml/index.jsonl", not); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", not, err)
		}
	}
}

func recordAt(ctx context.Context, t *testing.T, p place.Place, e *Entry) xml.Record {
	t.Helper()
	src, err := p.Open(ctx, filepath.ToSlash(filepath.Join("work/xml", e.Part)), e.Offset, e.Length)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	line := make([]byte, e.Length+1)
	n, _ := src.Read(line)
	r, err := xml.Parse(line[:n])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A task may read several files one after the other, each sorted by key.
func TestEachPartIsInOrder(t *testing.T) {
	p, err := file.Open(t.TempDir(), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	s := xmlSink(t, p, 3)
	urls := []string{"http://b.test/", "http://d.test/", "http://a.test/", "http://e.test/", "http://c.test/"}
	for _, url := range urls {
		emitPage(t, s, url, "of "+url)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	parts, err := indexParts(t.Context(), p, "work/xml")
	if err != nil || len(parts) != 3 {
		t.Fatalf("%q, %v", parts, err)
	}
	if _, err := mergeIndex(t.Context(), p, parts, "work/xml/index.jsonl"); err != nil {
		t.Fatal(err)
	}
	of := map[string]string{} // the last URL of a part
	for _, url := range slices.Sorted(slices.Values(urls)) {
		e, err := FindEntry(t.Context(), p, "work/xml/index.jsonl", url)
		if err != nil {
			t.Fatal(err)
		}
		if got := recordAt(t.Context(), t, p, e); got.URL != url || got.Headline != "of "+url {
			t.Errorf("%+v leads to %+v", e, got)
		}
		of[e.Part] = url
	}
	for part := range of {
		data, err := place.ReadFile(t.Context(), p, "work/xml/"+part)
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		for in := xml.NewReader(bytes.NewReader(data)); ; {
			line, _, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(part, err)
			}
			r, err := xml.Parse(line)
			if err != nil || r.URL <= last {
				t.Errorf("%s: %s behind %s, %v", part, r.URL, last, err)
			}
			last = r.URL
		}
	}
	if len(of) != 3 {
		t.Errorf("the parts are %v", of)
	}
}

func TestADamagedIndexIsNotTaken(t *testing.T) {
	lines := func(urls ...string) (text []byte) {
		for _, url := range urls {
			e := Entry{URL: url, Part: "part-00000.xml", Offset: 100, Length: 10}
			text = e.appendLine(text)
		}
		return text
	}
	whole := lines("http://a.test/", "http://b.test/")
	for name, text := range map[string][]byte{
		"out of order":                        lines("http://b.test/", "http://a.test/"),
		"cut in the last line":                whole[:len(whole)-3],
		"cut before the end of the last line": whole[:len(whole)-1],
	} {
		p, err := file.Open(t.TempDir(), vfs.OS)
		if err != nil {
			t.Fatal(err)
		}
		if err := place.WriteFile(t.Context(), p, "work/xml/index-00000.jsonl", text); err != nil {
			t.Fatal(err)
		}
		_, err = mergeIndex(t.Context(), p, []string{"work/xml/index-00000.jsonl"}, "index.jsonl")
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
