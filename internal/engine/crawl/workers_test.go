package crawl

import (
	"testing"

	"kumo/internal/state/entry"
	"kumo/internal/state/seen"
)

// TestWorkersShareLinkRooms tests that a worker whose visit is over holds on to nothing that is as large as its page's
// links, and that no more rooms for links are kept than there are pages read at once.
func TestWorkersShareLinkRooms(t *testing.T) {
	var p workerPool
	var all []*worker
	for range 4 * mostRooms {
		w := p.take(nil)
		p.lendRoom(&w.batch)
		for range 1000 {
			w.batch.urls = append(w.batch.urls, seen.URL{URL: "http://a.test/"})
		}
		w.batch.cands = append(w.batch.cands, make([]entry.Candidate, 1000)...)
		all = append(all, w)
	}
	for _, w := range all {
		p.rest(w)
		if cap(w.batch.cands) > 0 || cap(w.batch.urls) > 0 {
			t.Fatal("a worker that rests has a link room")
		}
	}
	if len(p.rooms) != mostRooms {
		t.Fatalf("%d rooms are kept, %d wanted", len(p.rooms), mostRooms)
	}
	w := p.take(nil)
	p.lendRoom(&w.batch)
	if cap(w.batch.cands) < 1000 || len(p.rooms) != mostRooms-1 {
		t.Errorf("a room for %d links, and %d left", cap(w.batch.cands), len(p.rooms))
	}
	for _, u := range w.batch.urls[:cap(w.batch.urls)] {
		if u.URL != "" {
			t.Fatalf("the room still has %q", u.URL)
		}
	}
}
