package crawl

import "testing"

// TestDurablePages: while a commit is under way, what it has is not durable, nor what comes meanwhile.
func TestDurablePages(t *testing.T) {
	var d durablePages
	d.beginCommit(7)
	d.beginCommit(7)
	for i, c := range []struct{ cut, durable int64 }{{10, 7}, {25, 10}, {25, 25}} {
		if d.beginCommit(c.cut); d.now.Load() != c.durable {
			t.Errorf("commit %d: %d pages are durable, want %d", i, d.now.Load(), c.durable)
		}
	}
}
