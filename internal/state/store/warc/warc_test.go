package warc

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
	"kumo/internal/state/store/storetest"
)

var testTime = time.Date(2026, 11, 21, 3, 12, 13, 123456789, time.UTC)

func openTest(t testing.TB, dir string, change func(*Config)) *Store {
	t.Helper()
	cfg := Config{Dir: dir, Name: "example.org", Hostname: "host1", Software: "kumo/0.1",
		Info: [][2]string{{"robots", "obey"}, {"http-header-user-agent", "Mozilla/5.0\r\n(evil)"}},
		Now:  func() time.Time { return testTime }}
	if change != nil {
		change(&cfg)
	}
	s, err := Open(vfs.OS, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// closeTest ends a crawl as the engine does and returns the last marks.
func closeTest(t *testing.T, s *Store) []store.Mark {
	t.Helper()
	marks, err := s.Mark()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{s.Sync, s.Finalize, s.Close} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return marks
}

func put(t *testing.T, s *Store, recs ...*page.Record) {
	t.Helper()
	for _, rec := range recs {
		if err := s.Put(rec); err != nil {
			t.Fatal(err)
		}
	}
}

// answer returns a visit of url with the given head and body; payload is the body without chunks.
func answer(url, head, body, payload string) *page.Record {
	parsed, _ := http.ReadResponse(bufio.NewReader(strings.NewReader(head)), nil)
	rec := &page.Record{URL: url, Final: url, Time: testTime, Took: 77 * time.Millisecond, Tries: 1,
		Digest: sha1.Sum([]byte(payload)),
		Response: &page.Response{URL: url, Status: 200, Proto: "HTTP/1.1", RequestRaw: []byte("GET / HTTP/1.1\r\nHost: " +
			"a\r\n\r\n"),
			Raw: []byte(head + body), HeadLen: len(head), Payload: []byte(payload), Start: testTime,
			Addr: netip.MustParseAddrPort("[::ffff:192.0.2.7]:443"), TLS: "TLS 1.3"}}
	if parsed != nil {
		rec.Response.Header = parsed.Header
	}
	return rec
}

// odd returns visits of all kinds.
func odd() map[string]*page.Record {
	const plain = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/html\r\n\r\n"
	const lf = "HTTP/1.0 200 OK\nContent-Type:text/plain\nX-Empty:\n\n"
	all := map[string]*page.Record{
		"plain":     answer("https://www.example.org/a?b=2&a=1", plain, "<html>hello", "<html>hello"),
		"chunked":   answer("https://example.org/chunked", chunked, "5\r\nhello\r\n0\r\n\r\n", "hello"),
		"bare lf":   answer("http://example.org/lf", lf, "text\n", "text\n"),
		"empty":     answer("http://example.org/empty", "HTTP/1.1 204 No Content\r\n\r\n", "", ""),
		"truncated": answer("http://example.org/cut", plain, "<html>he", "<html>he"),
		"malformed": answer("http://example.org/broken", "", "SSH-2.0-OpenSSH_9.9\r\n", ""),
		"half head": answer("http://example.org/half", "", "HTTP/1.1 200 OK\r\nContent-Ty", ""),
		"revisit":   answer("https://example.org/again", plain, "<html>hello", "<html>hello"),
		"robots":    answer("https://example.org/robots.txt", plain, "User-agent: *", "User-agent: *"),
		"bad url":   answer("http://example.org/a b\r\nWARC-Type: evil", plain, "x", "x"),
		"http2":     answer("https://example.org/h2", plain, "two", "two"),
	}
	all["plain"].Page = &page.Page{Type: "text/html", Charset: "utf-8", Title: "A \"title\"", Links: []page.Link{
		{URL: "https://example.org/next", Kind: page.Anchor}, {URL: "https://example.org/i.png", Kind: page.Image}}}
	all["plain"].From, all["plain"].Seed, all["plain"].Path = "https://example.org/", "https://example.org/", "LLR"
	all["truncated"].Response.Truncated = page.Length
	all["malformed"].Response.Malformed = "no status line"
	all["revisit"].Revisit = &page.Ref{URL: all["plain"].URL, Time: testTime, ID: newID()}
	all["robots"].Robots = true
	all["chunked again"] = answer("https://example.org/chunked/2", chunked, "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "hello")
	all["chunked again"].Revisit = &page.Ref{URL: all["chunked"].URL, Time: testTime, ID: newID(),
		Chunked: sha1.Sum([]byte("5\r\nhello\r\n0\r\n\r\n"))}
	all["unmodified"] = answer("http://example.org/unmodified", "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n", "",
		"<html>hello")
	all["unmodified"].Response.Status, all["unmodified"].Response.Payload = 304, nil
	all["unmodified"].Revisit = &page.Ref{URL: "http://example.org/unmodified", Time: testTime, ID: newID()}
	all["http2"].Response.Proto = "HTTP/2.0"
	return all
}

func TestRecords(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, nil)
	recs := odd()
	for _, rec := range recs {
		put(t, s, rec)
	}
	put(t, s, &page.Record{URL: "http://nowhere.example/", Failure: page.DNS}) // writes nothing
	closeTest(t, s)
	all := readWARC(t, filepath.Join(dir, "warc", recs["plain"].Location.File))
	if len(all) != 1+3*len(recs) || !all[0].is("warcinfo") {
		t.Fatalf("%d records, the first a %s", len(all), all[0].head.Get("WARC-Type"))
	}
	for name, rec := range recs {
		t.Run(name, func(t *testing.T) { checkVisit(t, dir, rec, all) })
	}
}

// checkVisit checks the properties of any visit: the response is at its location with the exact bytes, and the other
// two records follow and refer to it.
func checkVisit(t *testing.T, dir string, rec *page.Record, all []record) {
	at := recordAt(t, filepath.Join(dir, "warc", rec.Location.File), rec.Location.Offset, rec.Location.Length)
	if got := at.head.Get("WARC-Record-ID"); got != "<"+rec.Location.ID+">" {
		t.Errorf("at its place is %s, want %s", got, rec.Location.ID)
	}
	want := rec.Response.Raw
	if rec.Revisit != nil {
		want = want[:rec.Response.HeadLen]
	}
	if isUnmodified(rec) {
		want = nil
	}
	if !bytes.Equal(at.block, want) {
		t.Errorf("block %q, want %q", at.block, want)
	}
	if got := at.head.Get("WARC-Date"); got != "2026-11-21T03:12:13.123456Z" {
		t.Errorf("date %s", got)
	}
	if got := at.head.Get("WARC-IP-Address"); got != "192.0.2.7" {
		t.Errorf("address %s", got)
	}
	i := slices.IndexFunc(all, func(r record) bool { return r.head.Get("WARC-Record-ID") == "<"+rec.Location.ID+">" })
	for j, kind := range []string{"request", "metadata"} {
		r := all[i+1+j]
		if !r.is(kind) || r.head.Get("WARC-Concurrent-To") != "<"+rec.Location.ID+">" ||
			r.head.Get("WARC-Target-URI") != at.head.Get("WARC-Target-URI") {
			t.Errorf("record %d after the answer is %v", j+1, r.head)
		}
	}
}

func TestHeads(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, nil)
	recs := odd()
	for _, rec := range recs {
		put(t, s, rec)
	}
	closeTest(t, s)
	sum := func(text string) string { return string(appendDigest(nil, sha1.Sum([]byte(text)))) }
	for _, c := range []struct{ visit, field, want string }{
		{"plain", "WARC-Type", "response"},
		{"plain", "Content-Type", "application/http;msgtype=response"},
		{"plain", "WARC-Payload-Digest", sum("<html>hello")},
		{"plain", "WARC-Protocol", "http/1.1 tls/1.3"},
		{"http2", "WARC-Protocol", "h2 tls/1.3"},
		{"plain", "WARC-Truncated", ""},
		{"chunked", "WARC-Payload-Digest", sum("5\r\nhello\r\n0\r\n\r\n")},
		// the digest in the record with the body
		{"chunked again", "WARC-Payload-Digest", sum("5\r\nhello\r\n0\r\n\r\n")},
		{"unmodified", "WARC-Type", "revisit"},
		{"unmodified", "WARC-Profile", notModified},
		{"unmodified", "WARC-Refers-To-Target-URI", "http://example.org/unmodified"},
		{"unmodified", "WARC-Payload-Digest", sum("<html>hello")},
		{"unmodified", "Content-Length", "0"},
		{"empty", "WARC-Payload-Digest", sum("")},
		{"truncated", "WARC-Truncated", "length"},
		{"truncated", "WARC-Payload-Digest", sum("<html>he")},
		{"malformed", "WARC-Type", "resource"},
		{"malformed", "Content-Type", "application/octet-stream"},
		{"half head", "WARC-Type", "resource"},
		{"revisit", "WARC-Type", "revisit"},
		{"revisit", "WARC-Profile", identicalPayload},
		{"revisit", "WARC-Refers-To", "<" + recs["revisit"].Revisit.ID + ">"},
		{"revisit", "WARC-Refers-To-Target-URI", recs["plain"].URL},
		{"revisit", "WARC-Refers-To-Date", "2026-11-21T03:12:13.123456Z"},
		{"revisit", "WARC-Payload-Digest", sum("<html>hello")},
		{"bad url", "WARC-Target-URI", "http://example.org/a%20b%0D%0AWARC-Type:%20evil"},
	} {
		place := recs[c.visit].Location
		r := recordAt(t, filepath.Join(dir, "warc", place.File), place.Offset, place.Length)
		if got := strings.Join(r.head.Values(c.field), " "); got != c.want {
			t.Errorf("%s: %s is %q, want %q", c.visit, c.field, got, c.want)
		}
	}
}

func TestFieldBlocks(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, nil)
	rec := odd()["plain"]
	put(t, s, rec)
	closeTest(t, s)
	all := readWARC(t, filepath.Join(dir, "warc", rec.Location.File))
	for i, want := range map[int]string{
		0: "software: kumo/0.1\r\nformat: WARC File Format 1.1\r\n" +
			"conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n" +
			"isPartOf: example.org\r\nhostname: host1\r\nrobots: obey\r\nhttp-header-user-agent: Mozilla/5.0  (evil)\r\n",
		3: "seed: https://example.org/\r\nvia: https://example.org/\r\nhopsFromSeed: LLR\r\nfetchTimeMs: 77\r\n" +
			"exchangeTimeMs: connect=0 firstByte=0 total=0\r\n" +
			"charset: utf-8\r\ntitle: A \"title\"\r\n" +
			"outlink: https://example.org/next L a\r\noutlink: https://example.org/i.png E img\r\n",
	} {
		if got := string(all[i].block); got != want {
			t.Errorf("record %d:\n%s\nwant:\n%s", i, got, want)
		}
		if got := all[i].head.Get("Content-Type"); got != "application/warc-fields" {
			t.Errorf("record %d is of type %s", i, got)
		}
	}
	unmodified := odd()["unmodified"]
	want := "fetchTimeMs: 77\r\nexchangeTimeMs: connect=0 firstByte=0 total=0\r\nhttp-response: HTTP/1.1 304 Not " +
		"Modified\r\nhttp-response: ETag: \"v1\"\r\n"
	if got := string(appendMetadata(nil, unmodified)); got != want {
		t.Errorf("of what has not changed:\n%s\nwant:\n%s", got, want)
	}
	if got := all[0].head.Get("WARC-Filename"); got != rec.Location.File {
		t.Errorf("warcinfo names %s, want %s", got, rec.Location.File)
	}
}

// TestIndex checks that the crawl's index leads to each response, over many files and several runs.
func TestIndex(t *testing.T) {
	for _, compression := range []string{"gzip", "zstd", "none"} {
		t.Run(compression, func(t *testing.T) {
			dir := t.TempDir()
			var want []string
			for run := range 2 {
				s := openTest(t, dir, func(c *Config) { c.MaxSize, c.Compression = 20_000, compression })
				for n := range 30 {
					rec := storetest.Record(run*100 + (n*7)%30)
					put(t, s, rec)
					want = append(want, rec.URL)
				}
				closeTest(t, s)
			}
			slices.Sort(want)
			entries := readIndex(t, filepath.Join(dir, "index.cdxj"))
			if len(entries) != len(want) {
				t.Fatalf("%d lines, want %d", len(entries), len(want))
			}
			for i, e := range entries {
				r := e.record(t, dir)
				if e.URL != want[i] || r.head.Get("WARC-Target-URI") != want[i] || e.Digest != r.head.Get("WARC-Payload-Digest") {
					t.Errorf("line %d is %+v and leads to %v", i, e, r.head)
				}
			}
		})
	}
}

func TestIndexOfOddAnswers(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, nil)
	recs := odd()
	for _, rec := range recs {
		put(t, s, rec)
	}
	closeTest(t, s)
	got := map[string]entry{}
	for _, e := range readIndex(t, filepath.Join(dir, "index.cdxj")) {
		got[e.URL] = e
	}
	if len(got) != len(recs)-2 {
		t.Errorf("%d entries of %d visits, want all but the two that are not HTTP", len(got), len(recs))
	}
	if e := got[recs["plain"].URL]; e.key != "org,example)/a?a=1&b=2" || e.stamp != "20261121031213" ||
		e.MIME != "text/html" {
		t.Errorf("plain: %+v", e)
	}
	if e := got[recs["revisit"].URL]; e.MIME != "warc/revisit" || e.Digest != got[recs["plain"].URL].Digest {
		t.Errorf("revisit: %+v", e)
	}
	if e := got[recs["robots"].URL]; e.MIME != "text/html" { // declared in the head; the response was not parsed
		t.Errorf("robots: %+v", e)
	}
	if e := got[recs["empty"].URL]; e.MIME != "unk" {
		t.Errorf("empty: %+v", e)
	}
}

var fileName = regexp.MustCompile(`^example\.org-20261121031213123-(\d{5})-host1\.warc\.gz$`)

func TestFileNamesCountOn(t *testing.T) {
	dir := t.TempDir()
	var serials []string
	for run := range 2 {
		s := openTest(t, dir, func(c *Config) { c.MaxSize = 9_000 })
		for n := range 5 {
			rec := storetest.Record(run*5 + n)
			put(t, s, rec)
			m := fileName.FindStringSubmatch(rec.Location.File)
			if m == nil {
				t.Fatalf("file is called %s", rec.Location.File)
			}
			serials = append(serials, m[1])
		}
		closeTest(t, s)
	}
	if !slices.IsSorted(serials) || serials[0] != "00000" || len(slices.Compact(slices.Clone(serials))) != 6 ||
		serials[5] == serials[4] {
		t.Errorf("serials %v", serials)
	}
	names, _ := vfs.OS.List(filepath.Join(dir, "warc"))
	for _, name := range names {
		size, _ := vfs.OS.Size(filepath.Join(dir, "warc", name))
		if size > 9_000 {
			t.Errorf("%s has %d bytes", name, size)
		}
	}
}

func TestSafeNames(t *testing.T) {
	for in, want := range map[string]string{
		"": "crawl", "localhost:8080": "localhost_8080", "../../etc": ".._.._etc", "a.warc.gz": "a_warc.gz", "蜘蛛": "__",
	} {
		if got := safeName(in); got != want {
			t.Errorf("safeName(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestUnknownCompression(t *testing.T) {
	if _, err := Open(vfs.OS, Config{Dir: t.TempDir(), Compression: "lzma"}, nil); err == nil {
		t.Error("lzma was taken")
	}
}
