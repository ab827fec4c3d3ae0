package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// counted counts the files that are open for random reads.
type counted struct {
	FS
	open, most, opened atomic.Int64
}

func (c *counted) OpenAt(name string) (ReaderAt, error) {
	f, err := c.FS.OpenAt(name)
	if err != nil {
		return nil, err
	}
	c.opened.Add(1)
	for now := c.open.Add(1); ; {
		most := c.most.Load()
		if now <= most || c.most.CompareAndSwap(most, now) {
			break
		}
	}
	return &countedFile{f, c}, nil
}

type countedFile struct {
	ReaderAt
	in *counted
}

func (f *countedFile) Close() error {
	f.in.open.Add(-1)
	return f.ReaderAt.Close()
}

func TestBoundedKeepsFewFilesOpen(t *testing.T) {
	const files, most = 40, 3
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	below := &counted{FS: OS}
	disk := NewBounded(below, most)
	dir := t.TempDir()
	held := make([]ReaderAt, files)
	for i := range held {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, fmt.Appendf(nil, "file %02d", i), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := disk.OpenAt(name)
		if err != nil {
			t.Fatal(err)
		}
		held[i] = f
	}
	var readers sync.WaitGroup
	for r := range 8 {
		readers.Go(func() {
			dice := rand.New(rand.NewPCG(seed, uint64(r)))
			for range 500 {
				i, b := dice.IntN(files), make([]byte, 7)
				if _, err := held[i].ReadAt(b, 0); err != nil || string(b) != fmt.Sprintf("file %02d", i) {
					t.Errorf("file %d: %q, %v", i, b, err)
				}
			}
		})
	}
	readers.Wait()
	if n := below.most.Load(); n > most {
		t.Errorf("%d files were open at once, want %d at most", n, most)
	}
	for _, f := range held {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := below.open.Load(); n != 0 {
		t.Errorf("%d files are still open", n)
	}
	if _, err := held[0].ReadAt(make([]byte, 1), 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a closed file is read: %v", err)
	}
}

func TestBoundedOpensWhatIsReadAgainAndAgainOnce(t *testing.T) {
	below := &counted{FS: OS}
	disk := NewBounded(below, 2)
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := disk.OpenAt(name)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := f.ReadAt(make([]byte, 1), 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := below.opened.Load(); n != 1 {
		t.Errorf("it was opened %d times", n)
	}
	if _, err := disk.OpenAt(name + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
