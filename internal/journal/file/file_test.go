package file_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"kumo/internal/journal"
	"kumo/internal/journal/file"
	"kumo/internal/journal/journaltest"
	"kumo/internal/vfs"
)

func TestContract(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journaltest.Open {
		name := filepath.Join(t.TempDir(), "journal")
		return func(disk vfs.FS) (journal.Journal, error) { return file.Open(disk, name) }
	})
}

// write makes a journal of three batches and returns its bytes.
func write(t *testing.T, name string) []byte {
	t.Helper()
	j, err := file.Open(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{"first", "second", "third"} {
		if err := j.Append([]byte(b)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// use opens a journal of these bytes, replays it and appends to it.
func use(t *testing.T, name string, data []byte) error {
	t.Helper()
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
	j, err := file.Open(vfs.OS, name)
	if err != nil {
		return err
	}
	defer j.Close()
	return errors.Join(j.Replay(func([]byte) error { return nil }), j.Append([]byte("more")))
}

func TestEveryTornEndIsCutOff(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	data := write(t, name)
	for cut := range len(data) {
		if err := use(t, name, data[:cut]); err != nil {
			t.Errorf("cut at %d of %d: %v", cut, len(data), err)
		}
	}
	if err := use(t, name, append(data[:len(data)-3:len(data)-3], make([]byte, 5000)...)); err != nil {
		t.Errorf("zeros at the end: %v", err)
	}
}

func TestDamageInTheMiddleIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	data := write(t, name)
	last := len(data) - len("third") - 12
	for i := len("kumo journal 1\n"); i < last; i++ {
		damaged := bytes.Clone(data)
		damaged[i] ^= 1
		if err := use(t, name, damaged); !errors.Is(err, file.ErrDamaged) {
			t.Errorf("byte %d of %d: got %v, want ErrDamaged", i, len(data), err)
		}
	}
	for i := last; i < len(data); i++ { // the last batch may have been torn in any way
		torn := bytes.Clone(data)
		torn[i] ^= 1
		if err := use(t, name, torn); err != nil {
			t.Errorf("byte %d of %d: %v", i, len(data), err)
		}
		if kept, err := os.ReadFile(name + ".torn"); err != nil || !bytes.Equal(kept, torn[last:]) {
			t.Errorf("byte %d: what was cut off is not kept: %v", i, err)
		}
	}
}

func TestOtherVersionsAreRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	for _, data := range []string{"kumo journal 2\nabc", "something else altogether"} {
		if err := use(t, name, []byte(data)); !errors.Is(err, file.ErrVersion) {
			t.Errorf("%q: got %v, want ErrVersion", data, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("kumo journal 1\n\x03\x00\x00\x00\x00\x00\x00\x00abc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "journal")
		use(t, name, data)
	})
}
