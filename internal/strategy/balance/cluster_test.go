package balance

import (
	"testing"
	"time"

	"kumo/internal/strategy/central/hosttable"
)

func (w *world) key() hosttable.Key { return hosttable.Key{} }

// TestFiveNodes has the paper's five nodes fetch 500 URLs of one site.
func TestFiveNodes(t *testing.T) {
	learnt := samplesOf(t, 10)
	for seed := range uint64(10) {
		even := newWorld(t, seed, Even, fiveNodes, nil)
		even.find("n1~1", 500, 256)
		e := even.finish()
		t.Logf("seed %d, even: %v", seed, e)
		for name, given := range map[string][]byte{"cold": nil, "learnt": learnt} {
			w := newWorld(t, seed, Exact, fiveNodes, given)
			w.find("n1~1", 500, 256)
			r := w.finish()
			t.Logf("seed %d, %s: %v; %.3f of the even split; %d moved in %v", seed, name, r, r.time.Seconds()/e.time.Seconds(), w.moved, w.Now.Sub(w.began).Round(time.Second))
		}
	}
}
