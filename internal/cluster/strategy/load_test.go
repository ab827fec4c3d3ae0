package strategy

import (
	"testing"
	"time"
)

// TestShortQueue: a node has a short queue while it still works, is not paused, and will soon need more.
func TestShortQueue(t *testing.T) {
	for _, c := range []struct {
		load Load
		want bool
	}{
		{Load{Pending: 9, Rate: 10}, true},
		{Load{Pending: 10, Rate: 10}, false},
		{Load{Fetching: 1, Rate: 10}, true},
		{Load{Pending: 9, Rate: 10, Paused: true}, false},
		{Load{Pending: 9}, false}, // unknown speed
		{Load{Rate: 10}, false},   // no work
	} {
		if got := c.load.HasShortQueue(time.Second); got != c.want {
			t.Errorf("%+v: short queue %v, want %v", c.load, got, c.want)
		}
	}
}
