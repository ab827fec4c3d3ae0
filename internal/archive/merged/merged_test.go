package merged

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/vfs"
)

// makeFolders creates crawl folders with files, and returns them as one.
func makeFolders(t *testing.T, contents ...map[string]string) (disk vfs.FS, dir string) {
	root := t.TempDir()
	var folders []Folder
	for i, files := range contents {
		f := Folder{Name: string(rune('a' + i)), Dir: filepath.Join(root, string(rune('a'+i))), Disk: vfs.OS}
		for name, data := range files {
			name = filepath.Join(f.Dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(data), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		folders = append(folders, f)
	}
	dir = filepath.Join(root, "all")
	return New(vfs.OS, dir, folders), dir
}

func read(t *testing.T, disk vfs.FS, name string) string {
	t.Helper()
	f, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestListsAreJoined(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	disk, dir := makeFolders(t, map[string]string{"pages.jsonl": "one\ntwo\ntor"}, map[string]string{"crawl.log": "log\n"},
		map[string]string{"pages.jsonl": long}, map[string]string{"pages.jsonl": "three\n" + long})
	const want = "one\ntwo\nthree\n"
	name := filepath.Join(dir, "pages.jsonl")
	if got := read(t, disk, name); got != want {
		t.Errorf("pages.jsonl is %q, want %q", got, want)
	}
	if n, err := disk.Size(name); err != nil || n != int64(len(want)) {
		t.Errorf("its size is %d (%v), want %d", n, err, len(want))
	}
	at, err := disk.OpenAt(name)
	if err != nil {
		t.Fatal(err)
	}
	for from := range len(want) {
		for to := from; to <= len(want); to++ {
			b := make([]byte, to-from)
			if n, err := at.ReadAt(b, int64(from)); err != nil || string(b[:n]) != want[from:to] {
				t.Fatalf("bytes %d to %d are %q (%v), want %q", from, to, b[:n], err, want[from:to])
			}
		}
	}
	b := make([]byte, 9)
	if n, err := at.ReadAt(b, int64(len(want)-6)); string(b[:n]) != "three\n" || !errors.Is(err, io.EOF) {
		t.Errorf("beyond the end there is %q (%v)", b[:n], err)
	}
	if err := at.Close(); err != nil {
		t.Error(err)
	}
	if _, err := disk.OpenAt(filepath.Join(dir, "skipped.jsonl")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a list that no folder has: %v", err)
	}
}

// TestAGrowingList keeps positions valid while a folder's list grows.
func TestAGrowingList(t *testing.T) {
	disk, dir := makeFolders(t, map[string]string{"pages.jsonl": "one\n"}, map[string]string{"pages.jsonl": "two\n"})
	name := filepath.Join(dir, "pages.jsonl")
	read(t, disk, name)
	more := filepath.Join(filepath.Dir(dir), "a", "pages.jsonl")
	if err := os.WriteFile(more, []byte("one\nnew\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := read(t, disk, name); got != "one\ntwo\n" {
		t.Errorf("later there is %q", got)
	}
}

func TestFilesOfAllFolders(t *testing.T) {
	disk, dir := makeFolders(t, map[string]string{"warc/a.warc.gz": "A", "warc/c.warc.gz": "copy"},
		map[string]string{"warc/b.warc.gz": "B", "warc/c.warc.gz": "copy"})
	names, err := disk.List(filepath.Join(dir, "warc"))
	if want := []string{"a.warc.gz", "b.warc.gz", "c.warc.gz"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("there are %v (%v), want %v", names, err, want)
	}
	for name, want := range map[string]string{"a": "A", "b": "B", "c": "copy"} {
		if got := read(t, disk, filepath.Join(dir, "warc", name+".warc.gz")); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}

	disk, dir = makeFolders(t, map[string]string{"warc/a.warc.gz": "one"}, map[string]string{"warc/a.warc.gz": "other"})
	name := filepath.Join(dir, "warc", "a.warc.gz")
	if _, err := disk.Open(name); err == nil || !strings.Contains(err.Error(), "a and b have different files") {
		t.Errorf("two files of one name: %v", err)
	}
}

func TestOnlyReading(t *testing.T) {
	disk, dir := makeFolders(t, map[string]string{"pages.jsonl": "one\n"})
	name := filepath.Join(dir, "pages.jsonl")
	_, err := disk.Append(name)
	for _, err := range []error{err, disk.Remove(name), disk.Truncate(name, 0), disk.Rename(name, name+"2")} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("a change is answered by %v", err)
		}
	}
	elsewhere := filepath.Join(filepath.Dir(dir), "elsewhere")
	f, err := disk.Append(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), disk.Remove(elsewhere)); err != nil {
		t.Error(err)
	}
}
