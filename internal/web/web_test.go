package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"kumo/internal/frontier"
	"kumo/internal/stats"
)

func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- Serve(ctx, l, Source{
			Totals:   func() stats.Snapshot { return stats.Snapshot{Pages: 42} },
			Frontier: func() frontier.Counts { return frontier.Counts{Active: 3} },
			Known:    func() int { return 7 },
		})
	}()
	for path, wants := range map[string][]string{
		"/metrics":      {"kumo_pages_total 42", "kumo_hosts_active 3", "kumo_urls_known 7", "go_goroutines"},
		"/debug/pprof/": {"heap"},
	} {
		resp, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(body), want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
