package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kumo"
)

func TestDemo(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, nil); err != nil {
		t.Fatal(err)
	}
	if want := "200 Home\n200 Tides\n404 \n3 pages, 0 failed, 1 excluded, 0 waiting\n"; out.String() != want {
		t.Errorf("%s, want\n%s", out.String(), want)
	}
}

// Stopped in the middle, the same command goes on, and the file has all pages.
func TestGoesOn(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<title>` + r.URL.Path + `</title><a href="/1">1</a> <a href="/2">2</a> <a href="/3">3</a>`))
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "pages.jsonl")
	if err := os.WriteFile(file, []byte(`{"url":"http://cut.test/sho`), 0o666); err != nil { // as a kill may leave it
		t.Fatal(err)
	}
	for _, limit := range []int64{2, 0} {
		var out bytes.Buffer
		if err := crawl(t.Context(), &out, file, []string{s.URL}, kumo.Delay(0), kumo.Limit(limit)); err != nil {
			t.Fatal(err)
		}
		t.Log(out.String())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for text := range strings.Lines(string(data)) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		got[l.Title]++
	}
	for _, path := range []string{"/", "/1", "/2", "/3"} {
		if got[path] != 1 {
			t.Errorf("%d lines of %s", got[path], path)
		}
	}
}

// A program that imports kumo is one machine's crawler: it has no servers, no cluster, no Hadoop.
func TestLinksNoServer(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", ".")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "kumo/internal/app/wire\n") {
		t.Error("the library is not among what is linked")
	}
	for name := range strings.Lines(string(out)) {
		for _, not := range []string{"nats", "libp2p", "quic-go", "pion/", "wazero", "prometheus", "hdfs", "gokrb5",
			"gocloud",
			"aws-sdk", "cobra", "pflag", "chromedp",
			"kumo/internal/app/wire/cluster", "kumo/internal/cluster/bus", "kumo/internal/batch"} {
			if strings.Contains(name, not) {
				t.Errorf("it links %s", strings.TrimSpace(name))
			}
		}
	}
}
