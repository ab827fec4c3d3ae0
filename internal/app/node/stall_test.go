package node_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/state/frontier"
)

// A node whose disk stalls for twice the duration of a lease keeps its lease: its loop only reads counts of the
// frontier, which do not block.
func TestANodeOutlivesAStalledDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stalled atomic.Bool
		disk := vfstest.NewSlow(vfs.OS, func(string) {
			if stalled.Load() {
				time.Sleep(30 * time.Second)
			}
		})
		front, _, err := frontier.Open(frontier.Config{Dir: t.TempDir(), Disk: disk, Memory: 64 << 10})
		must(t, err)
		for i := range 5000 {
			host := fmt.Sprint("h", i%100)
			front.Push(host, frontier.Item{URL: fmt.Sprintf("http://%s/%d", host, i)})
			front.WaitForRoom(t.Context())
		}
		w := newWorld(t, 20, 10)
		nodes := together(t, w, "a", "b", "c")
		a := nodes[0]
		a.front.Store(front)
		stalled.Store(true)
		done := make(chan error, 2)
		go func() {
			v, err := front.Next(t.Context())
			if err == nil {
				front.Done(v, frontier.Result{Outcome: frontier.Answered})
			}
			done <- err
		}()
		go func() {
			front.Remove("h7", "h8")
			_, err := front.FinishRemove()
			done <- err
		}()
		time.Sleep(29 * time.Second)
		if n := a.breaks.Load(); n > 0 {
			t.Errorf("its lease has ended %d times", n)
		}
		stalled.Store(false)
		must(t, <-done)
		must(t, <-done)
		must(t, w.control.Start(t.Context(), nil, w.seeds(3)))
		ends(t, nil, nodes...)
		w.check(1)
		must(t, front.Close())
	})
}
