// Package journaltest implements the conformance tests of journals.
package journaltest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/state/journal"
)

// An Open opens the same journal on disk, again and again.
type Open func(disk vfs.FS) (journal.Journal, error)

// Run tests the journals that fresh makes; each call of fresh is a new, empty one.
func Run(t *testing.T, fresh func(t *testing.T) Open) {
	t.Run("batches come back in order", func(t *testing.T) { inOrder(t, fresh(t)) })
	t.Run("a replay begins where it is told", func(t *testing.T) { fromAnywhere(t, fresh(t)) })
	t.Run("what is dropped is gone, and no more", func(t *testing.T) { dropped(t, fresh(t)) })
	t.Run("a full disk tears only the last batch", func(t *testing.T) { fullDisk(t, fresh(t)) })
}

func inOrder(t *testing.T, open Open) {
	want := []string{"one", "two", string(bytes.Repeat([]byte{0}, 70_000)), "four"}
	for _, batch := range want {
		j := must(t, open, vfs.OS)
		check(t, j.Append([]byte(batch)))
		check(t, j.Close())
	}
	if got := replay(t, open); !slices.Equal(got, want) {
		t.Errorf("%d batches came back, want %d equal ones", len(got), len(want))
	}
}

// positions are where the batches of a journal end, the beginning first.
func positions(t *testing.T, j journal.Journal) []journal.Position {
	t.Helper()
	all := []journal.Position{0}
	check(t, j.Replay(0, func(_ []byte, end journal.Position) error {
		all = append(all, end)
		return nil
	}))
	return all
}

func fromAnywhere(t *testing.T, open Open) {
	want := fill(t, open, 30)
	j := must(t, open, vfs.OS)
	defer func() { check(t, j.Close()) }()
	ends := positions(t, j)
	if len(ends) != len(want)+1 || ends[len(want)] != j.End() {
		t.Fatalf("%d positions, the last is not the end %d: %v", len(ends), j.End(), ends)
	}
	for i, from := range ends {
		if got := replayFrom(t, j, from); !slices.Equal(got, want[i:]) {
			t.Errorf("from batch %d of %d came %d batches", i, len(want), len(got))
		}
	}
}

func dropped(t *testing.T, open Open) {
	want := fill(t, open, 30)
	j := must(t, open, vfs.OS)
	ends := positions(t, j)
	for i := range want {
		check(t, j.Drop(ends[i]))
		if got := replayFrom(t, j, ends[i]); !slices.Equal(got, want[i:]) {
			t.Errorf("after dropping %d batches %d are left of %d", i, len(got), len(want)-i)
		}
	}
	check(t, j.Append([]byte("more")))
	check(t, j.Close())
	j = must(t, open, vfs.OS)
	defer func() { check(t, j.Close()) }()
	last := ends[len(want)-1]
	if got := replayFrom(t, j, last); !slices.Equal(got, []string{want[len(want)-1], "more"}) {
		t.Errorf("opened again: %q", got)
	}
	if err := j.Replay(0, func([]byte, journal.Position) error { return nil }); err != nil &&
		!errors.Is(err, journal.ErrDropped) {
		t.Errorf("a replay of what was dropped: %v", err)
	}
}

// fill appends n batches of different lengths.
func fill(t *testing.T, open Open, n int) (all []string) {
	t.Helper()
	j := must(t, open, vfs.OS)
	for i := range n {
		all = append(all, fmt.Sprintf("batch %d %s", i, bytes.Repeat([]byte("x"), i*i)))
		check(t, j.Append([]byte(all[i])))
	}
	check(t, j.Close())
	return all
}

func replayFrom(t *testing.T, j journal.Journal, from journal.Position) (got []string) {
	t.Helper()
	check(t, j.Replay(from, func(batch []byte, _ journal.Position) error {
		got = append(got, string(batch))
		return nil
	}))
	return got
}

func fullDisk(t *testing.T, open Open) {
	for room := range int64(60) {
		disk := vfstest.NewFaulty(vfs.OS)
		before := replay(t, open)
		j := must(t, open, disk)
		disk.SetRoom(room)
		kept := before
		for i := range 5 {
			batch := fmt.Sprintf("room %d batch %d", room, i)
			if err := j.Append([]byte(batch)); err != nil {
				if !vfs.IsFull(err) {
					t.Fatalf("Append on a full disk: %v", err)
				}
				break
			}
			kept = append(kept, batch)
		}
		check(t, j.Close())
		if got := replay(t, open); !slices.Equal(got, kept) {
			t.Fatalf("after room for %d bytes: %d batches came back, want %d", room, len(got), len(kept))
		}
	}
}

func replay(t *testing.T, open Open) []string {
	t.Helper()
	j := must(t, open, vfs.OS)
	got := replayFrom(t, j, 0)
	check(t, j.Close())
	return got
}

func must(t *testing.T, open Open, disk vfs.FS) journal.Journal {
	t.Helper()
	j, err := open(disk)
	check(t, err)
	return j
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
