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

// Expired values take no additional space.
func TestExpiredValuesMakeRoom(t *testing.T) {
	now := 0
	table := NewTable(func(until int) bool { return until <= now })
	room := func() (n int) {
		for i := range table.parts {
			n += len(table.parts[i].keys)
		}
		return n
	}
	const atOnce = 20_000
	set := func() {
		for i := range atOnce {
			table.Set(fmt.Sprintf("host-%d.example", now+i), now+i+1)
			if i > 0 && table.Get(fmt.Sprintf("host-%d.example", now+i-1)) == 0 {
				t.Fatal("a value that has not expired is gone")
			}
		}
	}
	set()
	before := room()
	for range 20 {
		now += atOnce
		set()
	}
	if after := room(); after > 2*before {
		t.Errorf("room for %d names, %d when as many were there for the first time", after, before)
	}
	valid := 0
	table.Each(func(until int) {
		if until > now {
			valid++
		}
	})
	if valid != atOnce {
		t.Errorf("%d values, want %d", valid, atOnce)
	}
}
