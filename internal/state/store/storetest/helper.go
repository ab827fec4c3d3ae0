package storetest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"

	"github.com/klauspost/compress/zstd"
)

// Record returns a page record that is unique for n: about 4 KB that do not compress well.
func Record(n int) *page.Record {
	began := time.Date(2026, 11, 21, 3, 12, 13, 123456000, time.UTC).Add(time.Duration(n) * time.Second)
	body := noise(n, 4000)
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	url := fmt.Sprintf("https://example.org/page-%05d/", n)
	raw := append([]byte(head), body...)
	return &page.Record{
		URL: url, Final: url, From: "https://example.org/", Seed: "https://example.org/", Path: "L", Depth: 1,
		Time: began, Took: 45 * time.Millisecond, Tries: 1,
		Response: &page.Response{
			URL: url, Status: 200, Proto: "HTTP/1.1", Header: http.Header{"Content-Type": {"text/html"}},
			RequestRaw: []byte("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"),
			Raw:        raw, HeadLen: len(head), Payload: raw[len(head):], Body: raw[len(head):],
			Addr: netip.MustParseAddrPort("192.0.2.1:443"), TLS: "TLS 1.3", Start: began, Total: 45 * time.Millisecond,
		},
		Page:   &page.Page{Type: "text/html", Charset: "utf-8", Lang: "en", Title: "A page"},
		Fields: []page.Fields{{Rule: "rule", Values: []byte(`{"text":"` + hex.EncodeToString(body) + `"}`)}},
		Text:   &page.MainText{Title: "A page", Lang: "en", Text: string(body)},
		Digest: sha1.Sum(body),
	}
}

func noise(n, size int) []byte {
	rnd := rand.New(rand.NewPCG(uint64(n), 1))
	b := make([]byte, size)
	var bits uint64
	for i := range b {
		if i%12 == 0 { // 64 bits contain 12 groups of five bits
			bits = rnd.Uint64()
		}
		b[i] = "abcdefghijklmnopqrstuvwxyz <>=/\n"[bits%32]
		bits /= 32
	}
	return b
}

// Skip returns a skip that is unique for n. expect ignores its URL.
func Skip(n int) *page.Skip {
	return &page.Skip{URL: fmt.Sprintf("https://example.org/skip-%05d/", n), Host: "https://example.org", Rule: "robots",
		Why: "Disallow: /skip", From: "https://example.org/", Depth: 1, Time: time.Date(2026, 11, 21, 3, 12, 13, 0, time.UTC)}
}

func mustOpen(t *testing.T, open Opener, disk vfs.FS, dir string, marks []store.Mark) store.Store {
	t.Helper()
	s, err := open(disk, dir, marks)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// put writes the records and skips from a to b, exclusive.
func put(t *testing.T, s store.Store, a, b int) {
	t.Helper()
	for n := a; n < b; n++ {
		if err := s.Put(Record(n)); err != nil {
			t.Fatalf("put: %v", err)
		}
		if err := s.PutSkip(Skip(n)); err != nil {
			t.Fatalf("put skip: %v", err)
		}
	}
}

func mark(t *testing.T, s store.Store) []store.Mark {
	t.Helper()
	marks, err := s.Mark()
	if err != nil {
		t.Fatalf("mark: %v", err)
	}
	return marks
}

// commit does what the engine does: mark, sync, journal, finalize.
func commit(t *testing.T, s store.Store) []store.Mark {
	t.Helper()
	marks := mark(t, s)
	if err := s.Sync(); err != nil {
		t.Fatalf("sync: %v", err)
	}
	if err := s.Finalize(); err != nil {
		t.Fatalf("settle: %v", err)
	}
	return marks
}

func finish(t *testing.T, s store.Store) []store.Mark {
	t.Helper()
	marks := commit(t, s)
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return marks
}

// crash returns a copy of dir as a crash would leave it. If rnd is not nil, data after the marks is randomly cut and
// damaged.
func crash(t *testing.T, dir string, marks []store.Mark, rnd *rand.Rand) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if rnd == nil {
		return to
	}
	for _, m := range marks {
		name := filepath.Join(to, m.Name)
		b, err := os.ReadFile(name)
		if err != nil {
			continue // already renamed to its final name
		}
		tail := b[m.Length:]
		tail = tail[:rnd.IntN(len(tail)+1)]
		if len(tail) > 0 {
			tail[rnd.IntN(len(tail))] ^= 0xff
		}
		if err := os.WriteFile(name, b[:int(m.Length)+len(tail)], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

type span struct{ from, to int }

var pageURL = regexp.MustCompile(`https://example\.org/page-(\d{5})/`)

// expect checks that dir has exactly the records below n and those of the spans.
func expect(t *testing.T, dir string, n int, more ...span) {
	t.Helper()
	want := map[int]bool{}
	for _, s := range append(more, span{0, n}) {
		for i := s.from; i < s.to; i++ {
			want[i] = true
		}
	}
	got := urls(t, dir)
	for i := range want {
		if !got[i] {
			t.Errorf("record %d is lost", i)
		}
	}
	for i := range got {
		if !want[i] {
			t.Errorf("record %d came back", i)
		}
	}
}

// urls returns the numbers of the records whose URLs are in the files of dir.
func urls(t *testing.T, dir string) map[int]bool {
	t.Helper()
	found := map[int]bool{}
	walk(t, dir, func(name string) {
		for _, m := range pageURL.FindAllSubmatch(content(t, name), -1) {
			n, _ := strconv.Atoi(string(m[1]))
			found[n] = true
		}
	})
	return found
}

func expectFinal(t *testing.T, dir string) {
	t.Helper()
	walk(t, dir, func(name string) {
		if strings.HasSuffix(name, ".open") || strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s is not final", name)
		}
	})
}

func walk(t *testing.T, dir string, visit func(name string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			visit(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// content returns the decompressed content of a file.
func content(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var r io.Reader = bytes.NewReader(raw)
	switch plain := strings.TrimSuffix(name, ".open"); {
	case strings.HasSuffix(plain, ".gz"):
		r, err = gzip.NewReader(r)
	case strings.HasSuffix(plain, ".zst"):
		r, err = zstd.NewReader(r)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return text
}
