package bounded

import (
	"fmt"
	"testing"
)

func TestCounts(t *testing.T) {
	c := NewCounts()
	const n = 100_000
	name := func(i int) string { return fmt.Sprintf("host-%d.example", i) }
	for i := range n {
		c.Set(name(i), uint32(i))
	}
	for i := range n {
		c.Set(name(i), c.Get(name(i))+1)
	}
	for i := range n {
		if got := c.Get(name(i)); got != uint32(i+1) {
			t.Fatalf("%s: %d, want %d", name(i), got, i+1)
		}
	}
	if got := c.Get("stranger.example"); got != 0 {
		t.Errorf("a name that was not set: %d", got)
	}
	room := 0
	for i := range c.parts {
		room += len(c.parts[i].keys)
	}
	if bytes := float64(12*room) / n; bytes > 16 {
		t.Errorf("%.1f bytes a name", bytes)
	}
}
