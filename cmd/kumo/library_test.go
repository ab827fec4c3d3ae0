package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kumo"
)

// The command and the library resume each other's crawls, with the same settings.
func TestTheLibrarysFolders(t *testing.T) {
	pages := map[string]string{"/a/": `<a href="/a/1">1</a> <a href="/b">b</a>`, "/a/1": `<a href="/a/2">2</a>`,
		"/a/2": `<a href="/a/3">3</a>`, "/a/3": "<p>3", "/b": "<p>b"}
	var asked []string // by one connection
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pages[r.URL.Path] == "" {
			http.NotFound(w, r)
			return
		}
		asked = append(asked, r.URL.Path)
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(pages[r.URL.Path]))
	}))
	defer s.Close()
	command := func(args ...string) (string, error) {
		out, err := exec.Command(kumoProgram(t), append([]string{"crawl", "--quiet"}, args...)...).CombinedOutput()
		return string(out), err
	}
	library := func(opts ...kumo.Option) error {
		return kumo.New(append(opts, kumo.Delay(0))...).Run(t.Context(), s.URL+"/a/")
	}

	dir := filepath.Join(t.TempDir(), "library")
	out := kumo.Out(dir)
	if err := library(out, kumo.Scope("prefix"), kumo.Limit(1)); !errors.Is(err, kumo.ErrLimit) {
		t.Fatal(err)
	}
	text, err := command("--out", dir, "--scope", "host")
	if err == nil || !strings.Contains(text, "was begun with --scope prefix") {
		t.Errorf("another scope: %v, %s", err, text)
	}
	if text, err = command("--out", dir, "--limit", "3"); err == nil {
		t.Errorf("beyond the limit: %s", text)
	}
	if err := library(out, kumo.Scope("host")); err == nil || !strings.Contains(err.Error(), `was started with "prefix"`) {
		t.Errorf("another scope: %v", err)
	}
	if err := library(out); err != nil {
		t.Error(err)
	}
	if got := strings.Join(asked, " "); got != "/a/ /a/1 /a/2 /a/3" {
		t.Errorf("asked for %s", got)
	}

	asked, dir = nil, filepath.Join(t.TempDir(), "command")
	text, err = command("--out", dir, "--scope", "prefix", "--text", "--delay", "0", s.URL+"/a/")
	if err != nil {
		t.Errorf("%v, %s", err, text)
	}
	if err := library(kumo.Out(dir)); err == nil || !strings.Contains(err.Error(), "resume it with kumo crawl --out "+dir) {
		t.Errorf("main texts: %v", err)
	}

	dir = filepath.Join(t.TempDir(), "fields")
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte(pageRules), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err = command("--out", dir, "--scope", "prefix", "--fields", rules, "--delay", "0", s.URL+"/a/"); err != nil {
		t.Errorf("%v, %s", err, text)
	}
	if err := library(kumo.Out(dir)); err == nil || !strings.Contains(err.Error(), "writes fields.jsonl") {
		t.Errorf("records by rules: %v", err)
	}
}
