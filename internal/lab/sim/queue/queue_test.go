package queue

import (
	"testing"
	"time"
)

// TestAgenda: entries are ordered by time, then by insertion.
func TestAgenda(t *testing.T) {
	var a Agenda[int]
	for i := range 1000 {
		a.Put(time.Duration(i*7919%50), i)
	}
	last, at := -1, a.Next()
	for range 1000 {
		now := a.Next()
		i := a.Take()
		if now < at || now == at && i < last || i*7919%50 != int(now) {
			t.Fatalf("%d at %v, after %d at %v", i, now, last, at)
		}
		last, at = i, now
	}
	if a.Next() != Forever {
		t.Error("something is left")
	}
}
