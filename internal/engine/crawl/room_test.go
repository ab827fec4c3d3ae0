package crawl

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"

	"kumo/internal/base/vfs"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal/memory"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
)

// TestWorkersWaitWhileSeenIsFull: a worker continues when a checkpoint has made room, not before.
func TestWorkersWaitWhileSeenIsFull(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e := onDisk(t, dir)
		for n := 0; !e.known.db.Full(); n++ {
			e.known.db.Offer([]seen.URL{{URL: fmt.Sprint("https://h.example/", n), State: seen.Known}}, nil)
		}
		waited := make(chan bool)
		go func() {
			e.holds.awaitRoom(t.Context())
			close(waited)
		}()
		synctest.Wait()
		select {
		case <-waited:
			t.Error("it does not wait")
		default:
		}
		if err := e.Checkpoints.checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-waited
	})
}

// onDisk returns an engine with little memory for known URLs.
func onDisk(t testing.TB, dir string) *Engine {
	t.Helper()
	db, err := seen.Open(vfs.OS, filepath.Join(dir, "seen"), seen.Config{Memory: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	front, note, err := frontier.Open(frontier.Config{Disk: vfs.OS, Dir: filepath.Join(dir, "frontier")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if err := front.Close(); err != nil {
			t.Error(err)
		}
	})
	j := memory.New()
	state, err := recovery.Recover(j, recovery.Views{Seen: db, Digests: seen.NewRecent(), Frontier: front,
		Abandoned: statefile.OpenAbandoned(vfs.OS, dir), Note: note})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{}, Parts{Journal: j, Robots: robots.NewCache(robots.Config{})}, state)
}
