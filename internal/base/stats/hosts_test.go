package stats

import (
	"fmt"
	"testing"
	"time"
)

// TestManyHosts tests that pages of few hosts are exact, and that the slowest hosts are kept if there are too many.
func TestManyHosts(t *testing.T) {
	c := New()
	visit := func(i int, took time.Duration) {
		c.Visited(Visit{Host: fmt.Sprintf("h%d", i), Status: 200, Took: took})
	}
	for i := range maxHosts {
		visit(i, time.Duration(i)*time.Microsecond)
	}
	if n, known := c.HostPages("h7"); n != 1 || !known {
		t.Errorf("one of few: %d pages, %v", n, known)
	}
	visit(maxHosts-1, time.Hour)
	for i := range maxHosts {
		visit(maxHosts+i, time.Millisecond)
	}
	if _, known := c.HostPages("h7"); known {
		t.Error("one of many is said to be known")
	}
	s := c.Snapshot()
	if len(s.Hosts) > maxHosts || !s.Partial || s.Pages != 2*maxHosts+1 {
		t.Errorf("%d hosts, partial %v, %d pages", len(s.Hosts), s.Partial, s.Pages)
	}
	var r Report
	r.Fill(From(s, c.Sums()).DurableSnapshot(), 0, 0)
	if slow := r.Slowest[0]; slow.Host != fmt.Sprintf("h%d", maxHosts-1) || slow.Pages != 2 {
		t.Errorf("the slowest is %+v", slow)
	}
}
