package storetest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A member is a record of a WARC file, and where it is.
type member struct {
	kind, url, id, refersTo string
	length                  int64
}

type place struct {
	file   string
	offset int64
}

// CheckConsistent checks that the files of the finished crawl in dir are complete and consistent: gzip-compressed
// WARCs, their indexes, pages.jsonl, crawl.log and skipped.jsonl.
func CheckConsistent(t *testing.T, dir string) {
	t.Helper()
	members := readWARCs(t, dir)
	pages := readPages(t, dir, members)
	stored := map[string]int{} // URLs of pages
	ids := map[string]bool{}
	indexed := 0
	for _, m := range members {
		ids[m.id] = true
	}
	for at, m := range members {
		if m.kind != "response" && m.kind != "revisit" && m.kind != "resource" {
			continue
		}
		if m.kind != "resource" {
			indexed++
		}
		if m.refersTo != "" && m.kind == "revisit" && !ids[m.refersTo] {
			t.Errorf("%v: revisits %s, which does not exist", at, m.refersTo)
		}
		if !isRobots(m.url) {
			stored[m.url]++
		}
	}
	for url, n := range stored {
		if n != 1 || !pages[url] {
			t.Errorf("%s: %d records; in pages.jsonl: %v", url, n, pages[url])
		}
	}
	if len(stored) != len(pages) {
		t.Errorf("%d pages in WARCs, %d in pages.jsonl", len(stored), len(pages))
	}
	wantIndex(t, dir, members, indexed)
	wantLog(t, dir, pages)
	wantSkips(t, dir, pages)
}

func isRobots(url string) bool { return strings.HasSuffix(url, "/robots.txt") }

// readWARCs reads all records of all WARC files completely.
func readWARCs(t *testing.T, dir string) map[place]member {
	t.Helper()
	names, err := os.ReadDir(filepath.Join(dir, "warc"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[place]member{}
	for _, n := range names {
		switch {
		case strings.HasSuffix(n.Name(), ".cdxj"):
		case !strings.HasSuffix(n.Name(), ".warc.gz"):
			t.Errorf("%s remains in warc/", n.Name())
		default:
			if err := readWARC(dir, n.Name(), all); err != nil {
				t.Errorf("%s: %v", n.Name(), err)
			}
		}
	}
	return all
}

func readWARC(dir, name string, all map[place]member) error {
	data, err := os.ReadFile(filepath.Join(dir, "warc", name))
	if err != nil {
		return err
	}
	src := bytes.NewReader(data)
	for src.Len() > 0 {
		offset := int64(len(data) - src.Len())
		z, err := gzip.NewReader(src) // reads no more than the member, since src returns single bytes
		if err != nil {
			return fmt.Errorf("at %d: %w", offset, err)
		}
		z.Multistream(false)
		m, err := readMember(bufio.NewReader(z))
		if err != nil {
			return fmt.Errorf("at %d: %w", offset, err)
		}
		m.length = int64(len(data)-src.Len()) - offset
		all[place{name, offset}] = m
	}
	return nil
}

func readMember(in *bufio.Reader) (m member, err error) {
	r := textproto.NewReader(in)
	if line, err := r.ReadLine(); err != nil || line != "WARC/1.1" {
		return m, fmt.Errorf("first line is %q: %w", line, err)
	}
	head, err := r.ReadMIMEHeader()
	if err != nil {
		return m, err
	}
	n, err := strconv.Atoi(head.Get("Content-Length"))
	if err != nil {
		return m, err
	}
	block := make([]byte, n)
	if _, err := io.ReadFull(in, block); err != nil {
		return m, err
	}
	if rest, err := io.ReadAll(in); err != nil || string(rest) != "\r\n\r\n" {
		return m, fmt.Errorf("block is followed by %q: %w", rest, err)
	}
	if sum := sha1.Sum(block); "sha1:"+base32.StdEncoding.EncodeToString(sum[:]) != head.Get("WARC-Block-Digest") {
		return m, errors.New("block does not match its digest")
	}
	return member{kind: head.Get("WARC-Type"), url: head.Get("WARC-Target-URI"), id: head.Get("WARC-Record-ID"),
		refersTo: head.Get("WARC-Refers-To")}, nil
}

// readPages checks that each page is where pages.jsonl locates it, and returns the URLs.
func readPages(t *testing.T, dir string, members map[place]member) map[string]bool {
	t.Helper()
	pages := map[string]bool{}
	eachLine(t, filepath.Join(dir, "pages.jsonl"), func(line string) {
		var p struct {
			URL, WARC string
			Offset    int64
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Errorf("pages.jsonl: %q: %v", line, err)
			return
		}
		if pages[p.URL] {
			t.Errorf("pages.jsonl contains %s twice", p.URL)
		}
		pages[p.URL] = true
		if m := members[place{p.WARC, p.Offset}]; m.url != p.URL {
			t.Errorf("%s: the record at the location in pages.jsonl is a %s of %q", p.URL, m.kind, m.url)
		}
	})
	return pages
}

// wantIndex checks that each record is in the index of its file and in the merged index, and that the indexes contain
// nothing else.
func wantIndex(t *testing.T, dir string, members map[place]member, want int) {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(dir, "warc", "*.cdxj"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, name := range append(parts, filepath.Join(dir, "index.cdxj")) {
		var own []string
		eachLine(t, name, func(line string) { own = append(own, line) })
		if !slices.IsSorted(own) {
			t.Errorf("%s is not sorted", name)
		}
		if filepath.Base(name) != "index.cdxj" {
			lines = append(lines, own...)
			continue
		}
		if slices.Sort(lines); !slices.Equal(lines, own) {
			t.Errorf("index.cdxj has %d lines, the indexes of the files have %d", len(own), len(lines))
		}
	}
	met := map[place]bool{}
	for _, line := range lines {
		var c struct{ URL, Filename, Offset, Length string }
		_, fields, _ := strings.Cut(line, " {")
		if err := json.Unmarshal([]byte("{"+fields), &c); err != nil {
			t.Errorf("index: %q: %v", line, err)
			continue
		}
		offset, _ := strconv.ParseInt(c.Offset, 10, 64)
		at := place{c.Filename, offset}
		if m := members[at]; m.url != c.URL || strconv.FormatInt(m.length, 10) != c.Length || met[at] {
			t.Errorf("index: %q: the record there is %+v", line, m)
		}
		met[at] = true
	}
	if len(met) != want {
		t.Errorf("the index has %d of %d records", len(met), want)
	}
}

// wantLog checks that crawl.log contains each page once.
func wantLog(t *testing.T, dir string, pages map[string]bool) {
	t.Helper()
	logged := map[string]bool{}
	eachLine(t, filepath.Join(dir, "crawl.log"), func(line string) {
		f := strings.Fields(line)
		if len(f) != 12 {
			t.Errorf("crawl.log: %q", line)
			return
		}
		if f[1][0] == '-' || isRobots(f[3]) {
			return
		}
		if logged[f[3]] || !pages[f[3]] {
			t.Errorf("crawl.log: %s: duplicate %v, in pages.jsonl %v", f[3], logged[f[3]], pages[f[3]])
		}
		logged[f[3]] = true
	})
	if len(logged) != len(pages) {
		t.Errorf("crawl.log has %d of %d pages", len(logged), len(pages))
	}
}

// wantSkips checks that skipped.jsonl contains no URL twice, and no page.
func wantSkips(t *testing.T, dir string, pages map[string]bool) {
	t.Helper()
	met := map[string]bool{}
	eachLine(t, filepath.Join(dir, "skipped.jsonl"), func(line string) {
		var s struct{ URL string }
		if err := json.Unmarshal([]byte(line), &s); err != nil || met[s.URL] || pages[s.URL] {
			t.Errorf("skipped.jsonl: %q: %v; duplicate %v, a page %v", line, err, met[s.URL], pages[s.URL])
		}
		met[s.URL] = true
	})
}

func eachLine(t *testing.T, name string, f func(line string)) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
		return
	}
	for line := range strings.Lines(string(data)) {
		f(strings.TrimSuffix(line, "\n"))
	}
}
