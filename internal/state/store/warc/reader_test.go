package warc

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A record is a member as parsed by the minimal reader of these tests.
type record struct {
	head  textproto.MIMEHeader
	block []byte
}

func (r record) is(kind string) bool { return r.head.Get("WARC-Type") == kind }

// parseRecord parses exactly one record and checks the properties of any record.
func parseRecord(t *testing.T, text []byte) record {
	t.Helper()
	r := textproto.NewReader(bufio.NewReader(bytes.NewReader(text)))
	version, err := r.ReadLine()
	if err != nil || version != "WARC/1.1" {
		t.Fatalf("record begins with %q (%v)", version, err)
	}
	head, err := r.ReadMIMEHeader()
	if err != nil {
		t.Fatal(err)
	}
	length, err := strconv.Atoi(head.Get("Content-Length"))
	if err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(r.R)
	if len(rest) != length+4 || string(rest[length:]) != "\r\n\r\n" {
		t.Fatalf("a block of %d bytes is followed by %q", length, rest[min(length, len(rest)):])
	}
	rec := record{head, rest[:length]}
	if got, want := head.Get("WARC-Block-Digest"), string(appendDigest(nil, sha1.Sum(rec.block))); got != want {
		t.Errorf("block digest %s, want %s", got, want)
	}
	return rec
}

// readWARC reads a gzip file member by member.
func readWARC(t *testing.T, name string) []record {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	src := bytes.NewReader(raw)
	var records []record
	for src.Len() > 0 {
		z, err := gzip.NewReader(src)
		if err != nil {
			t.Fatal(err)
		}
		z.Multistream(false)
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, parseRecord(t, text))
	}
	return records
}

// recordAt reads the record that takes length bytes at offset.
func recordAt(t *testing.T, name string, offset, length int64) record {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	part := raw[offset : offset+length]
	switch filepath.Ext(name) {
	case ".gz":
		z, err := gzip.NewReader(bytes.NewReader(part))
		if err != nil {
			t.Fatal(err)
		}
		part, err = io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
	case ".zst":
		z, _ := zstd.NewReader(nil)
		if part, err = z.DecodeAll(part, nil); err != nil {
			t.Fatal(err)
		}
	}
	return parseRecord(t, part)
}

// An entry is a CDXJ line.
type entry struct {
	key, stamp                                          string
	URL, MIME, Status, Digest, Length, Offset, Filename string
}

func (e entry) record(t *testing.T, dir string) record {
	t.Helper()
	offset, _ := strconv.ParseInt(e.Offset, 10, 64)
	length, _ := strconv.ParseInt(e.Length, 10, 64)
	return recordAt(t, filepath.Join(dir, "warc", e.Filename), offset, length)
}

func readIndex(t *testing.T, name string) []entry {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var entries []entry
	last := ""
	for line := range strings.Lines(string(text)) {
		if line < last {
			t.Errorf("%q comes after %q", line, last)
		}
		last = line
		parts := strings.SplitN(line, " ", 3)
		e := entry{key: parts[0], stamp: parts[1]}
		if err := json.Unmarshal([]byte(parts[2]), &e); err != nil {
			t.Fatal(fmt.Errorf("%q: %w", line, err))
		}
		entries = append(entries, e)
	}
	return entries
}
