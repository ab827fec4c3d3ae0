package crawl

import "testing"

// TestDurablePages: pages of the commit under way are not durable, nor are later ones.
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
