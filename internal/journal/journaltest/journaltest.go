// Package journaltest is the contract that every journal keeps.
package journaltest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"kumo/internal/journal"
	"kumo/internal/vfs"
)

// An Open opens the same journal on disk, again and again.
type Open func(disk vfs.FS) (journal.Journal, error)

// Run tests the journals that fresh makes; each call of fresh is a new, empty one.
func Run(t *testing.T, fresh func(t *testing.T) Open) {
	t.Run("batches come back in order", func(t *testing.T) { inOrder(t, fresh(t)) })
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

func fullDisk(t *testing.T, open Open) {
	for room := range int64(60) {
		disk := vfs.NewFaulty(vfs.OS)
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
	var got []string
	check(t, j.Replay(func(batch []byte) error {
		got = append(got, string(batch))
		return nil
	}))
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
