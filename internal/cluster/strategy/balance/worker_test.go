package balance

import (
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance/model"
)

// beats sends a worker a load report every second, n times; next changes the load before each.
func (w *worker) beats(from time.Time, n int, e *strategy.Load, next func()) time.Time {
	for range n {
		from = from.Add(time.Second)
		next()
		w.update(from, *e)
		w.startPiece(from)
	}
	return from
}

func newTestWorker() *worker {
	return &worker{node: "a~1", prediction: prediction{time: func(n int) float64 { return float64(n) / 10 },
		basis: model.Network}}
}

// TestAPauseSaysNothing pauses a node with pending URLs: its pace does not change.
func TestAPauseSaysNothing(t *testing.T) {
	w, e := newTestWorker(), &strategy.Load{Pending: 5, Fetching: 1, Busy: 0.25}
	at := w.beats(time.Unix(0, 0), 2, e, func() { e.Pages++ })
	before := w.slower()
	e.Paused = true
	at = w.beats(at, 60, e, func() {})
	e.Paused = false
	w.beats(at, 1, e, func() {})
	if is := w.slower(); is > 1.1*before {
		t.Errorf("after a minute's pause it is taken for %.1f times as slow as predicted, before for %.1f", is, before)
	}
}

// TestWhatNeverComes: some of the links assigned to a node never arrive, while others do. The leader does not wait for
// them forever.
func TestWhatNeverComes(t *testing.T) {
	w, e := newTestWorker(), &strategy.Load{Pending: 5, Fetching: 4, Busy: 1}
	at := w.beats(time.Unix(0, 0), 2, e, func() { e.Pages += 10 })
	for range 30 {
		w.delivery.sent = append(w.delivery.sent, grant{at, 7}, grant{at, 7})
		at = w.beats(at, 20, e, func() { e.Pages, e.Enqueued = e.Pages+10, e.Enqueued+1 })
		if w.inTransit() > 0 {
			t.Fatalf("%d URLs are waited for after 20 s; what is sent takes %v", w.inTransit(), w.delivery.took)
		}
	}
	e.Pending, e.Fetching, e.Busy = 0, 0, 0
	w.delivery.sent = append(w.delivery.sent, grant{at, 7})
	w.beats(at, int(lostAfter.Seconds())+1, e, func() {})
	if w.inTransit() > 0 {
		t.Errorf("a node with nothing to do waits for %d URLs", w.inTransit())
	}
}

// TestANodeWithLittleToDoIsTriedAgain: a node that was slow, and then has so little work that its pace cannot be
// measured, gets work again.
func TestANodeWithLittleToDoIsTriedAgain(t *testing.T) {
	w, e := newTestWorker(), &strategy.Load{Pending: 5, Fetching: 1, Busy: 0.25}
	at := w.beats(time.Unix(0, 0), 20, e, func() {})
	if is := w.slower(); is < 3 {
		t.Fatalf("who does nothing is taken for %.1f times as slow as predicted", is)
	}
	e.Pending = 0
	w.beats(at, 60, e, func() { e.Pages++ })
	if is := w.slower(); is > 1.5 {
		t.Errorf("a minute later it is still taken for %.1f times as slow as predicted", is)
	}
}
