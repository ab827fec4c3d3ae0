package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumo/internal/app/folder"
	"kumo/internal/base/settings"
)

// TestNewerFormat tests that every command that opens a crawl's folder refuses one in a newer format, with an error
// that names both versions, and changes nothing there.
func TestNewerFormat(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>one</title>"))
	}))
	defer srv.Close()
	kumo := kumoProgram(t)
	dir, url := filepath.Join(t.TempDir(), "crawl"), srv.URL+"/"
	if out, err := exec.Command(kumo, "crawl", "-q", "--delay", "0", "-o", dir, url).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	name := filepath.Join(dir, folder.FormatName)
	if text, whole := settings.ReadChecked(name); !whole || !strings.HasPrefix(string(text), "format: 1\n") {
		t.Errorf("the crawl's format is %q", text)
	}
	if err := os.WriteFile(name, settings.AppendChecksum([]byte("format: 7\nkumo: 9.9.9\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	before := filesOf(t, dir)
	into := filepath.Join(t.TempDir(), "into")
	for _, command := range []string{"crawl -o DIR URL", "crawl -o DIR --fresh URL", "crawl -o DIR", "repair DIR",
		"repair --dry-run DIR", "verify DIR", "export --to links DIR INTO", "status DIR", "serve DIR", "links --broken DIR",
		"explain -o DIR URL", "hosts -o DIR", "queue -o DIR a.example", "seen -o DIR http", "search -o DIR one", "index DIR",
		"set -o DIR delay=1s", "set -o DIR", "pause -o DIR", "resume -o DIR", "stop -o DIR", "add -o DIR URL",
		"block -o DIR a.example", "traps DIR", "snapshot DIR INTO", "mcp DIR",
		"node --crawl x --name a --listen 127.0.0.1:0 -o DIR",
		"node --strategy mesh --crawl x --name a --listen 127.0.0.1:0 -o DIR",
	} {
		args := strings.Fields(strings.NewReplacer("DIR", dir, "URL", url, "INTO", into).Replace(command))
		out, err := exec.Command(kumo, args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "format 7, of kumo 9.9.9, and this is kumo "+settings.Version) ||
			!strings.Contains(string(out), "use kumo 9.9.9 or a newer one") {
			t.Errorf("kumo %s: %v: %s", command, err, out)
		}
		if diff := cmp.Diff(before, filesOf(t, dir)); diff != "" {
			t.Fatalf("kumo %s has changed files: %s", command, diff)
		}
	}
	if _, err := os.Stat(into); err == nil {
		t.Error("something was written from the folder")
	}
}

// filesOf returns the contents of all files below a folder, by their names.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
