package crawl

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestInterrupt: requests that would last an hour end at once with the lease, and their URLs are fetched later.
func TestInterrupt(t *testing.T) {
	m := &maze{hosts: 5, pages: 100}
	crew := newCrew(t, 1, m, m.url(0), m.url(1))
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		slow.Store(true)
		m.takes = func(string) time.Duration {
			if slow.Load() {
				return time.Hour
			}
			return time.Millisecond
		}
		go func() {
			time.Sleep(time.Minute)
			synctest.Wait()
			if c := crew.nodes[0].engine.Load().frontier.Counts(); c.Active == 0 {
				t.Error("nothing is under way")
			}
			slow.Store(false)
			crew.nodes[0].engine.Load().Interrupt()
			crew.nodes[0].engine.Load().Interrupt()
		}()
		start := time.Now()
		crew.run(t)
		if took := time.Since(start); took > 2*time.Minute {
			t.Errorf("it took %v", took)
		}
	})
	for _, nodes := range m.asked {
		if len(nodes) > 2 {
			t.Errorf("a URL was asked for %d times", len(nodes))
		}
	}
}
