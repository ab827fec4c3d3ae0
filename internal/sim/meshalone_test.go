package sim

import (
	"testing"
	"time"
)

// aloneMesh is a few nodes at which nothing goes wrong but what a test does, crawling for so long.
func aloneMesh(seed uint64, nodes int, crawling time.Duration) *meshWorld {
	cfg := smallMesh()
	cfg.Nodes, cfg.FaultEvery, cfg.Loss, cfg.Busy = nodes, -1, -1, false
	w := newMeshWorld(cfg.withDefaults(), seed)
	for i := range cfg.Nodes {
		w.k.after(time.Duration(i)*w.cfg.Spread/time.Duration(cfg.Nodes), func() { w.join() })
	}
	w.pass(w.cfg.Spread + w.cfg.Quiet)
	w.seed()
	w.pass(w.k.now + crawling)
	return w
}

// endOthers ends all processes but one, as when the crawl is over.
func (w *meshWorld) endOthers(p *meshProcess) {
	for len(w.live) > 1 {
		q := w.live[0]
		if q == p {
			q = w.live[1]
		}
		q.end()
	}
}

// TestWhoWakesAloneWaits lets a node sleep until the others have fetched all and ended: when it wakes it waits for them
// before it takes what they had, as one that begins does; in the end it goes on.
func TestWhoWakesAloneWaits(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		w := aloneMesh(seed, 8, 20*time.Second)
		sleeper := w.live[3]
		sleeper.paused = true
		w.pass(w.k.now + 5*time.Minute)
		if n := w.missing(); n > 0 {
			t.Fatalf("seed %d: the others have not fetched %d pages", seed, n)
		}
		w.endOthers(sleeper)
		sleeper.resume()
		before := sleeper.asked
		w.pass(w.k.now + 15*time.Second)
		if n := sleeper.asked - before; n > 0 {
			t.Errorf("seed %d: who wakes alone sends %d requests at once", seed, n)
		}
		w.pass(w.k.now + time.Minute)
		if n := sleeper.asked - before; n == 0 {
			t.Errorf("seed %d: who wakes alone never goes on", seed)
		}
	}
}

// TestWhoIsLeftGoesOnWithItsOwn ends one of two nodes while they crawl: the other one goes on with what it had to fetch,
// and with the rest a little later.
func TestWhoIsLeftGoesOnWithItsOwn(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		w := aloneMesh(seed, 2, 20*time.Second)
		left := w.live[1]
		own := left.view
		asks := func(since moment) (mine, others int) {
			for h, v := range w.at {
				switch {
				case v == nil || v.by != left || v.ends < since:
				case own.Ours(w.web.hosts[h].name):
					mine++
				default:
					others++
				}
			}
			return mine, others
		}
		w.endOthers(left)
		w.pass(w.k.now + 8*time.Second) // it has noticed
		since := w.k.now
		w.pass(w.k.now + 6*time.Second)
		if mine, others := asks(since); mine == 0 || others > 0 {
			t.Errorf("seed %d: who is left alone asks %d hosts of its own at first, and %d of others", seed, mine, others)
		}
		w.pass(w.k.now + time.Minute)
		if _, others := asks(since); others == 0 {
			t.Errorf("seed %d: who is left alone never takes what others had", seed)
		}
	}
}
