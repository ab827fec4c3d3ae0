package jsonl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
	"kumo/internal/state/store/storetest"
)

// lines returns the lines that a store wrote to the file called name.
func lines(t *testing.T, name string, fill func(store.Store) error) string {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(vfs.OS, Config{Dir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := fill(s); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Mark(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const plain = `{"url":"https://example.org/page-00001/","final":"https://example.org/page-00001/","status":200,` +
	`"time":"2026-11-21T03:12:14.123Z","type":"text/html","charset":"utf-8","lang":"en","title":"A page","bytes":4000,` +
	`"digest":"sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","depth":1,"from":"https://example.org/","links":0,` +
	`"connect_ms":0,"first_byte_ms":0,"total_ms":45`

func TestPages(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*page.Record)
		want   string
	}{
		{"plain", func(*page.Record) {}, plain + "}\n"},
		{"stored", func(r *page.Record) { r.Location = page.Location{File: "a.warc.gz", Offset: 815} },
			plain + `,"warc":"a.warc.gz","offset":815}` + "\n"},
		{"truncated", func(r *page.Record) { r.Response.Truncated = page.Time }, plain + `,"truncated":"time"}` + "\n"},
		{"malformed", func(r *page.Record) { r.Response.Malformed = "bad \"chunk\"\n\xff" },
			plain + `,"malformed":"bad \"chunk\"\n\ufffd"}` + "\n"},
		{"links cut", func(r *page.Record) { r.Page.LinksCut = page.ByMemory }, plain + `,"links_cut":"memory"}` + "\n"},
		{"needs script", func(r *page.Record) { r.Page.NeedsScript = page.ScriptRoot },
			plain + `,"needs_script":"root"}` + "\n"},
		{"usage", func(r *page.Record) {
			r.Usage = &page.Usage{Uses: page.Uses{TrainAI: "n"}, Source: "header", Raw: `Content-Usage: train-ai=n, x="<"`}
		}, plain + `,"usage":{"train_ai":"n","source":"header","raw":"Content-Usage: train-ai=n, x=\"\u003c\""}}` + "\n"},
		{"revisit", func(r *page.Record) { r.Revisit = &page.Ref{URL: "https://example.org/"} },
			plain + `,"revisit":"https://example.org/"}` + "\n"},
		{"asks of robots", func(r *page.Record) {
			r.Page.Robots = page.Robots{Meta: "noindex", Header: "kumo: noarchive"}
			r.NoIndex, r.NoArchive = true, true
		}, plain + `,"robots":"noindex; kumo: noarchive","noindex":true,"noarchive":true}` + "\n"},
		{"ranked by links", func(r *page.Record) { r.Importance = 1234567.89 },
			plain + `,"importance":1.2346e+06}` + "\n"},
		{"not what it is declared as", func(r *page.Record) { r.Page.Sniffed = "application/pdf" },
			plain + `,"sniffed":"application/pdf"}` + "\n"},
		{"what the page says of itself", func(r *page.Record) {
			r.Page.Heading, r.Page.Description, r.Page.Canonical = "Head \"line\"", "About", "https://example.org/1"
			r.Page.Variants = []page.Variant{{Lang: "de", URL: "https://example.org/de"},
				{Lang: "x-default", URL: "https://example.org/"}}
		}, plain + `,"h1":"Head \"line\"","description":"About","canonical":"https://example.org/1",` +
			`"hreflang":[{"lang":"de","url":"https://example.org/de"},{"lang":"x-default","url":"https://example.org/"}]}` +
			"\n"},
		{"time taken", func(r *page.Record) {
			r.Response.DNS, r.Response.Connect, r.Response.Handshake = 1e6, 2e6, 4e6
			r.Response.FirstByte, r.Response.Total = 30e6, 51e6
		}, strings.Replace(plain, `"connect_ms":0,"first_byte_ms":0,"total_ms":45`,
			`"connect_ms":7,"first_byte_ms":30,"total_ms":51`, 1) + "}\n"},
		{"robots.txt has no line", func(r *page.Record) { r.Robots = true }, ""},
		{"a failure has no line", func(r *page.Record) { r.Response, r.Failure = nil, page.DNS }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := storetest.Record(1)
			rec.Digest = page.Digest{}
			c.change(rec)
			if c.want != "" { // the address is the last member
				c.want = strings.TrimSuffix(c.want, "}\n") + `,"server_ip":"192.0.2.1"}` + "\n"
			}
			if got := lines(t, "pages.jsonl", func(s store.Store) error { return s.Put(rec) }); got != c.want {
				t.Errorf("got  %swant %s", got, c.want)
			}
		})
	}
}

func TestUnreadPage(t *testing.T) {
	rec := &page.Record{URL: "http://a/", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)),
		Response: &page.Response{}}
	want := `{"url":"http://a/","final":"","status":0,"time":"2026-01-02T02:04:05.000Z","type":"","charset":"","lang":"","title":"","bytes":0,` +
		`"digest":"sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","depth":0,"from":"","links":0,"connect_ms":0,"first_byte_ms":0,"total_ms":0}` + "\n"
	if got := lines(t, "pages.jsonl", func(s store.Store) error { return s.Put(rec) }); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestSkips(t *testing.T) {
	want := `{"url":"https://example.org/skip-00001/","host":"https://example.org","rule":"robots","why":"Disallow: /skip",` +
		`"from":"https://example.org/","depth":1,"time":"2026-11-21T03:12:13.000Z"}` + "\n"
	if got := lines(t, "skipped.jsonl", func(s store.Store) error { return s.PutSkip(storetest.Skip(1)) }); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func BenchmarkPut(b *testing.B) {
	s, err := Open(vfs.OS, Config{Dir: b.TempDir()}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	rec := storetest.Record(1)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Put(rec); err != nil {
			b.Fatal(err)
		}
	}
}
