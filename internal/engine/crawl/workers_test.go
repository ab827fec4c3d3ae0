package crawl

import (
	"testing"

	"kumo/internal/state/entry"
	"kumo/internal/state/seen"
)

// TestWorkersShareLinkBuffers tests that an idle worker has no buffers for links, and that at most maxFreeBuffers are
// kept for reuse.
func TestWorkersShareLinkBuffers(t *testing.T) {
	buffers := &batchPool{}
	p := workerPool{buffers: buffers, make: func() *worker { return &worker{} }}
	var all []*worker
	for range 4 * maxFreeBuffers {
		w := p.acquire()
		buffers.getBuffers(&w.batch)
		for range 1000 {
			w.batch.urls = append(w.batch.urls, seen.URL{URL: "http://a.test/"})
		}
		w.batch.cands = append(w.batch.cands, make([]entry.Candidate, 1000)...)
		all = append(all, w)
	}
	for _, w := range all {
		p.put(w)
		if cap(w.batch.cands) > 0 || cap(w.batch.urls) > 0 {
			t.Fatal("an idle worker has buffers")
		}
	}
	if len(buffers.free) != maxFreeBuffers {
		t.Fatalf("%d buffers are kept, want %d", len(buffers.free), maxFreeBuffers)
	}
	w := p.acquire()
	buffers.getBuffers(&w.batch)
	if cap(w.batch.cands) < 1000 || len(buffers.free) != maxFreeBuffers-1 {
		t.Errorf("buffers for %d links, and %d left", cap(w.batch.cands), len(buffers.free))
	}
	for _, u := range w.batch.urls[:cap(w.batch.urls)] {
		if u.URL != "" {
			t.Fatalf("the buffers still have %q", u.URL)
		}
	}
}

// TestBatchPoolTakesTheBatchUsedLast tests that a reused batch is empty, with buffers that another batch has freed.
func TestBatchPoolTakesTheBatchUsedLast(t *testing.T) {
	var p batchPool
	first, second := p.acquire(), p.acquire()
	first.cands = append(first.cands, entry.Candidate{Host: "a.test"})
	first.links, first.visitURL = 1, "http://a.test/"
	p.put(second)
	p.put(first)
	b := p.acquire()
	if b != first || !b.empty() || b.links != 0 || b.visitURL != "" || cap(b.cands) == 0 || len(p.free) != 0 {
		t.Errorf("got batch %+v, %d buffers left", b, len(p.free))
	}
}
