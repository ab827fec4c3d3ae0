package crawl

import (
	"bytes"
	"errors"
	"syscall"
	"testing"
	"time"

	"kumo/internal/journal"
	"kumo/internal/journal/file"
	"kumo/internal/vfs"
)

// A batch that was torn must stay the journal's last, or what follows it could not be trusted.
func TestNothingFollowsAFailedCommit(t *testing.T) {
	disk, dir := vfs.NewFaulty(vfs.OS), t.TempDir()
	j, err := file.Open(disk, dir, file.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := newCommitter(Parts{Journal: j}, Config{Commit: time.Second, Now: time.Now}.withDefaults(), func(*encoder) {})
	commit := func(b byte) error {
		if err := c.put(nil, nil, func() []byte { return bytes.Repeat([]byte{b}, 16) }); err != nil {
			t.Fatal(err)
		}
		return c.commit()
	}
	if err := commit(1); err != nil {
		t.Fatal(err)
	}
	disk.SetRoom(20)
	if err := commit(2); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	disk.SetRoom(-1) // somebody has made room
	if err := commit(3); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a commit after it: %v", err)
	}
	if err := c.drop(1); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a drop after it: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = file.Open(disk, dir, file.Config{}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	n := 0
	err = j.Replay(0, func(batch []byte, _ journal.Position) error {
		n++
		return nil
	})
	if err != nil || n != 1 {
		t.Errorf("%d batches, %v", n, err)
	}
}
