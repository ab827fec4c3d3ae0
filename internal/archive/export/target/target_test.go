package target

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/advice"
)

func open(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := Open(dir, "site", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func claim(t *testing.T, f *Folder, names ...string) {
	t.Helper()
	err := f.DeclareFiles(t.Context(), func(add func(string) error) error {
		for _, name := range names {
			if err := add(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, f *Folder, name, text string) {
	t.Helper()
	if err := f.Put(name, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// there lists the files of a folder without kumo's own.
func there(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if d.IsDir() && name == PrivateDir {
			return fs.SkipDir
		}
		if !d.IsDir() {
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWhatTheNextExportHasNotGoes(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	claim(t, f, "a/b/c", "a/d", "e")
	put(t, f, "a/b/c", "1")
	put(t, f, "a/d", "2") // ended before e was written
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f = open(t, dir)
	claim(t, f, "a/b", "a/d") // a folder was replaced by a file
	put(t, f, "a/b", "3")
	put(t, f, "a/d", "2")
	if got := there(t, dir); !slices.Equal(got, []string{"a/b", "a/d", "a/mine"}) {
		t.Error(got)
	}
	if f.Written != 1 || f.Unchanged != 1 || f.Removed != 1 || f.Bytes != 2 {
		t.Errorf("%d written, %d same, %d removed, %d bytes", f.Written, f.Unchanged, f.Removed, f.Bytes)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = open(t, dir)
	claim(t, f, "a/b/c") // and a file by a folder
	put(t, f, "a/b/c", "4")
	if got := there(t, dir); !slices.Equal(got, []string{"a/b/c", "a/mine"}) {
		t.Error(got)
	}
}

// Files left by an interrupted run are removed by the next, whichever names it has.
func TestAnEndedRunLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	for n, names := range [][]string{{"x", "y"}, {"y", "z"}, {"q"}} {
		f := open(t, dir)
		claim(t, f, names...)
		put(t, f, names[0], "text")
		w, err := f.Create(names[len(names)-1])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString("half"); err != nil || w.Flush() != nil {
			t.Fatal(err)
		}
		if err := w.file.Close(); err != nil { // simulates the end of the process
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		want := []string{names[0]}
		if got := there(t, dir); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
}

func TestNothingIsWrittenOutside(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "precious"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir)
	for _, link := range []struct{ to, name string }{{outside, "out"}, {filepath.Join(outside, "precious"), "file"},
		{"..", "up"}} {
		if err := os.Symlink(link.to, filepath.Join(dir, link.name)); err != nil {
			t.Skip(err)
		}
	}
	for _, name := range []string{"../precious", "/etc/x", "out/precious", "up/x", "a/../../x", "", ".", "a\x00b"} {
		if err := f.Put(name, []byte("new")); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	put(t, f, "file", "new") // the link is replaced
	if text, err := os.ReadFile(filepath.Join(outside, "precious")); err != nil || string(text) != "old" {
		t.Errorf("%q, %v", text, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	// Nothing else is removed, even if the list was changed.
	if err := os.WriteFile(filepath.Join(dir, listName), []byte("../x\n/etc/x\nout/precious\n\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.DeclareFiles(t.Context(), func(func(string) error) error { return nil }); err == nil {
		t.Error("what lies outside was to be removed, and that is no error")
	}
	if _, err := os.Stat(filepath.Join(outside, "precious")); err != nil {
		t.Error(err)
	}
}

func TestAFolderOfOthersIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, "site", ""); !advice.IsUsage(err) || !strings.Contains(err.Error(), "thesis.tex") {
		t.Error(err)
	}
	one := t.TempDir()
	open(t, one)
	if _, err := Open(one, "site", ""); err == nil || !strings.Contains(err.Error(), "another kumo") {
		t.Error(err)
	}
	two := t.TempDir()
	if err := open(t, two).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(two, "csv", ""); !advice.IsUsage(err) || !strings.Contains(err.Error(), "an export to site") {
		t.Error(err)
	}
}

func TestClaimEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	claim(t, f, "a")
	put(t, f, "a", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := f.DeclareFiles(ctx, func(add func(string) error) error { return add("b") })
	if err == nil || !slices.Equal(there(t, dir), []string{"a"}) {
		t.Error(err, there(t, dir))
	}
}
