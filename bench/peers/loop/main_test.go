package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"

	"kumo/internal/lab/synthweb"
)

// TestLoopFetchesAll crawls a web whose hosts are IP addresses.
func TestLoopFetchesAll(t *testing.T) {
	cfg := synthweb.Clean(1, 3, 60)
	cfg.ByAddress = true
	s, err := synthweb.Serve(context.WithoutCancel(t.Context()), synthweb.New(cfg), synthweb.ServeOptions{})
	if err != nil {
		t.Skipf("this system has no such addresses: %v", err)
	}
	defer s.Close()
	path := filepath.Join(t.TempDir(), "loop.warc.gz")
	if err := run(s.SeedURLs()[0], 4, path); err != nil {
		t.Fatal(err)
	}
	score := s.Score()
	if score.Missing > 0 || score.Repeats > 0 {
		t.Errorf("%v", score)
	}
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if n := bytes.Count(text, []byte("WARC/1.1\r\nWARC-Type: response\r\n")); err != nil || int64(n) != score.Requests {
		t.Errorf("%d responses of %d are in the WARC, %v", n, score.Requests, err)
	}
}
