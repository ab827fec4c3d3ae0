package main

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"kumo/internal/app/wire/exports"
	"kumo/internal/lab/testmain"
)

// TestExportIsKilled: an export that is killed at any moment leaves complete files alone, and the same command finishes
// with the same result.
func TestExportIsKilled(t *testing.T) {
	testmain.Slow(t)
	if testing.Short() {
		t.Skip("it exports a crawl to each form several times")
	}
	t.Parallel()
	seed := number("KUMO_TEST_SEED", rand.Uint64())
	dice := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	crawl := filepath.Join(dir, "crawl")
	program := kumoProgram(t)
	run := func(args ...string) *exec.Cmd { return exec.Command(program, args...) }
	if out, err := run("demo", "--hosts", "3", "--pages", "60", "--delay", "0", "--messy=false", "-o",
		crawl).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, form := range exports.Formats() {
		whole, place := filepath.Join(dir, form, "whole"), filepath.Join(dir, form, "place")
		began := time.Now()
		if out, err := run("export", "-q", "--to", form, crawl, whole).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		took, want := time.Since(began), exported(t, whole)
		for range testmain.Rounds(1, 4) {
			cmd := run("export", "-q", "--to", form, crawl, place)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// it may have ended
			timer := time.AfterFunc(time.Duration(dice.Int64N(int64(took))), func() { _ = cmd.Process.Kill() })
			_ = cmd.Wait() // killed, mostly
			timer.Stop()
			for name, text := range exported(t, place) {
				if text != want[name] {
					t.Errorf("seed %d, %s: %s is not whole: %d bytes of %d", seed, form, name, len(text), len(want[name]))
				}
			}
		}
		if out, err := run("export", "-q", "--to", form, crawl, place).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := exported(t, place); !maps.Equal(got, want) || len(want) == 0 {
			t.Errorf("seed %d, %s: %d files, want %d, or others", seed, form, len(got), len(want))
		}
	}
}

// exported returns the files of an export, by name.
func exported(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil // it was killed before it had a folder
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".kumo":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		text, err := os.ReadFile(name)
		all[name[len(dir):]] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
