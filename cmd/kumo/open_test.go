package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/app/folder"
	"kumo/internal/app/setting"
	"kumo/internal/view/web/ui"
)

func TestBrowserCommand(t *testing.T) {
	t.Parallel()
	abs, err := filepath.Abs("x.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		system, set string
		want        []string
	}{
		{"linux", "", nil},
		{"linux", "DISPLAY", []string{"xdg-open", abs}},
		{"freebsd", "WAYLAND_DISPLAY", []string{"xdg-open", abs}},
		{"darwin", "", []string{"open", abs}},
		{"windows", "", []string{"rundll32", "url.dll,FileProtocolHandler", abs}},
	} {
		env := func(name string) string {
			if name == c.set {
				return ":0"
			}
			return ""
		}
		if got := browserCommand(c.system, env, "x.html"); !slices.Equal(got, c.want) {
			t.Errorf("%s with %q: %q, want %q", c.system, c.set, got, c.want)
		}
	}
}

// A page without a folder, or with a folder that the user cannot write to, has its token in a folder of the user. kumo
// open finds it there, and the token stays the same.
func TestTokensWithoutAFolder(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("LocalAppData", t.TempDir())
	missing := filepath.Join(t.TempDir(), "missing")
	for _, c := range []struct {
		shown webContent
		find  func(string) (uiRecord, string, error)
		by    string
	}{
		{webContent{dirs: []string{missing}}, findPage, missing},
		{webContent{Config: ui.Config{Batches: []ui.Batch{{Name: "s3://bucket/news"}}}}, findPage, "s3://bucket/news"},
		{webContent{Config: ui.Config{Crawls: []ui.Crawl{{Name: "news"}}}}, findClusterPage, "news"},
	} {
		page, err := (crawlUI(setting.UI{Addr: "127.0.0.1:0"})).listen()
		if err != nil {
			t.Fatal(err)
		}
		defer page.close()
		var tokens []string
		for range 2 {
			note, kept, end, err := page.publish(t.Context(), &c.shown)
			if err != nil || !kept || note.Token == "" {
				t.Fatalf("%s: %+v, %v, %v", c.by, note, kept, err)
			}
			found, in, err := c.find(c.by)
			if err != nil || found != *note {
				t.Fatalf("%s: %+v, %v, not %+v", c.by, found, err, *note)
			}
			if info, err := os.Stat(filepath.Join(in, folder.UIName)); err != nil || isOpen(info) {
				t.Errorf("%s: others may read it: %v, %v", c.by, info, err)
			}
			tokens = append(tokens, note.Token)
			end()
			if found, _, err := c.find(c.by); err == nil {
				t.Errorf("%s: afterwards %+v", c.by, found)
			}
		}
		if tokens[0] != tokens[1] {
			t.Errorf("%s: the token has changed", c.by)
		}
	}
}

// The command line of the browser does not show the token to other users.
func TestOpenPage(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DISPLAY", ":0")
	t.Setenv("PATH", bin)
	name := filepath.Join(dir, folder.OpenName)
	if command := browserCommand("linux", os.Getenv, name); strings.Contains(strings.Join(command, " "), "token") {
		t.Errorf("the command is %q", command)
	}
	if err := writeOpenPage(name, "http://127.0.0.1:1/?token=A&x=\""); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(text), `content="0; url=http://127.0.0.1:1/?token=A&amp;x=&#34;"`) {
		t.Errorf("%s, %v", text, err)
	}
	if info, err := os.Stat(name); err != nil || isOpen(info) {
		t.Errorf("others may read it: %v, %v", info, err)
	}
	if err := openBrowser("http://127.0.0.1:1/", dir); err != nil {
		t.Errorf("without a browser: %v", err)
	}
}
