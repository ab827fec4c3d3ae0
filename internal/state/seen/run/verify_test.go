package run

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"kumo/internal/base/vfs"
)

// TestVerifyReadsEveryByte: a change of any byte is detected by Open or Verify.
func TestVerifyReadsEveryByte(t *testing.T) {
	for _, compress := range []bool{false, true} {
		name := filepath.Join(t.TempDir(), "run")
		w, err := Create(vfs.OS, name, Options{Compress: compress})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2000 {
			if err := w.Add(fmt.Appendf(nil, "http://example.com/%06d", i), fmt.Appendf(nil, "value %d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		if err := verified(t, name); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		seed := rand.Uint64()
		dice := rand.New(rand.NewPCG(seed, 0))
		for range 200 {
			at := dice.IntN(len(data))
			data[at] ^= 0x10
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := verified(t, name); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
				t.Errorf("seed %d: byte %d of %d was changed: %v", seed, at, len(data), err)
			}
			data[at] ^= 0x10
		}
	}
}

func verified(t *testing.T, name string) error {
	t.Helper()
	r, err := Open(vfs.OS, name)
	if err != nil {
		return err
	}
	return errors.Join(r.Verify(t.Context()), r.Close())
}

// A filter that lacks a key would make the key new.
func TestVerifyAsksTheFilters(t *testing.T) {
	name := filepath.Join(t.TempDir(), "run")
	w, err := Create(vfs.OS, name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := w.Add(fmt.Appendf(nil, "%03d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range w.sharder.hashes {
		w.sharder.hashes[i]++
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := verified(t, name); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
}
