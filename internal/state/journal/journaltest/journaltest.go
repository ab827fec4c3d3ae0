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

// An Open opens the same journal on disk each time.
type Open func(disk vfs.FS) (journal.Journal, error)

// Run tests a journal implementation. Each call of fresh returns a function that opens a new, empty journal.
func Run(t *testing.T, fresh func(t *testing.T) Open) {
	t.Run("batches are replayed in order", func(t *testing.T) { inOrder(t, fresh(t)) })
	t.Run("replay from any position", func(t *testing.T) { fromAnywhere(t, fresh(t)) })
	t.Run("only dropped batches are missing", func(t *testing.T) { dropped(t, fresh(t)) })
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
		t.Errorf("replayed %d batches, want %d equal ones", len(got), len(want))
	}
}

// positions returns the positions between the batches of a journal, starting with 0.
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
		t.Fatalf("%d positions, and the last is not the end %d: %v", len(ends), j.End(), ends)
	}
	for i, from := range ends {
		if got := replayFrom(t, j, from); !slices.Equal(got, want[i:]) {
			t.Errorf("from batch %d of %d: %d batches", i, len(want), len(got))
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
			t.Errorf("after dropping %d batches: %d of %d left", i, len(got), len(want)-i)
		}
	}
	check(t, j.Append([]byte("more")))
	check(t, j.Close())
	j = must(t, open, vfs.OS)
	defer func() { check(t, j.Close()) }()
	last := ends[len(want)-1]
	if got := replayFrom(t, j, last); !slices.Equal(got, []string{want[len(want)-1], "more"}) {
		t.Errorf("after reopening: %q", got)
	}
	if err := j.Replay(0, func([]byte, journal.Position) error { return nil }); err != nil &&
		!errors.Is(err, journal.ErrDropped) {
		t.Errorf("replay of dropped batches: %v", err)
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
			t.Fatalf("after space for %d bytes: %d batches, want %d", room, len(got), len(kept))
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
