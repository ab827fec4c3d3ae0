package main

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/archive/away"
	"kumo/internal/archive/place/bucket/buckettest"
	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
)

// A node starts although its storage location is down, and logs that. If the location refuses access, the node does not
// start, unless it has uploaded files there before.
func TestAPlaceThatIsDownWhenANodeStarts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // no server answers there
	n := &nodeRunner{o: &options{place: "hdfs://" + l.Addr().String() + "/news"}, out: t.TempDir()}
	var said bytes.Buffer
	show := &console{log: slog.New(slog.NewTextHandler(&said, nil))}
	if err := n.checkPlace(t.Context(), show); err != nil {
		t.Errorf("a new node ends with %v", err)
	}
	if !strings.Contains(said.String(), "cannot be reached at present: record files stay") {
		t.Errorf("it has said %q", said.String())
	}
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	defer bucket.Close()
	buckettest.Credentials(t)
	n.o.place = buckettest.URL(bucket.URL, "news")
	if err := n.checkPlace(t.Context(), show); err == nil || advice.IsUsage(err) {
		t.Errorf("a new node goes on with %v", err)
	}
	if err := os.MkdirAll(filepath.Join(n.out, filepath.Dir(away.LinkName)), 0o755); err != nil {
		t.Fatal(err)
	}
	link := away.Link{Place: n.o.place + "/a~1", URL: n.o.place + "/a~1", ID: "one"}
	if err := link.Write(vfs.OS, n.out); err != nil {
		t.Fatal(err)
	}
	if err := n.checkPlace(t.Context(), show); err != nil {
		t.Errorf("a node that was here before ends: %v", err)
	}
	n.o.place = "ftp://example.com/news"
	if err := n.checkPlace(t.Context(), show); !advice.IsUsage(err) {
		t.Errorf("a place that is none: %v", err)
	}
}
