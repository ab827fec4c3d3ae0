package main

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"kumo/internal/advice"
	"kumo/internal/away"
	"kumo/internal/vfs"
)

// A node that begins with a place that is down ends, so that a person sees it; one that has brought files there before
// does not.
func TestAPlaceThatIsDownWhenANodeStarts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody answers there
	n := &noder{o: &options{place: "hdfs://" + l.Addr().String() + "/news"}, out: t.TempDir()}
	show := &show{log: slog.New(slog.DiscardHandler)}
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
