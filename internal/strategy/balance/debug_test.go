package balance

import (
	"fmt"
	"testing"
	"time"
)

func TestDebug(t *testing.T) {

	w := newWorld(t, 4, Exact, fiveNodes, samplesOf(t, 10))
	w.find("n1~1", 500, 256)
	last := w.Now
	w.after = func(w *world) {
		if w.Now.Sub(last) < 5*time.Second {
			return
		}
		last = w.Now
		s := fmt.Sprintf("%5.0f fetched %d moved %d ", w.Now.Sub(w.began).Seconds(), len(w.fetched), w.moved)
		for _, n := range w.living() {
			f := w.nodes[n]
			q := 0
			for _, u := range f.queues {
				q += len(u)
			}
			s += fmt.Sprintf(" %s:%d+%d(%d)", n[:2], q, len(f.under), f.pages)
		}
		t.Log(s)
		t.Log(w.Nodes[w.Leader()].String()[200:])
	}
	t.Log(w.finish())
	for _, n := range w.living() {
		t.Log(n, w.nodes[n].end.Sub(w.began))
	}
}
