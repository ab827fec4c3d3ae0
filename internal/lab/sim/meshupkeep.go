package sim

import "time"

// Upkeep is what nodes without a centre have sent in three times, one after the other.
type Upkeep struct {
	Crawl MeshFigures // until all is fetched, and nobody has anything to do
	Rest  MeshFigures // while nothing happens
	Churn MeshFigures // while nodes come and go, each staying for MeshConfig.Stay on average
	Known float64     // URLs that a node's history has, on average, when the crawl is over
}

// RunUpkeep lets nodes crawl a web to the end, then rest, then come and go, for a time each. Half of those that go lose
// their disk, and new ones come in their place; the others come back.
func RunUpkeep(cfg MeshConfig, each time.Duration, seed uint64) (u Upkeep) {
	w := newMeshWorld(cfg.withDefaults(), seed)
	cfg = w.cfg
	for i := range cfg.Nodes {
		w.k.after(time.Duration(i)*cfg.Spread/time.Duration(cfg.Nodes), func() { w.join() })
	}
	w.pass(cfg.Spread + cfg.Quiet)
	phase := func(f func()) MeshFigures {
		before := w.soFar()
		f()
		return w.soFar().since(before)
	}
	u.Crawl = phase(func() {
		w.seed()
		for end := w.k.now + cfg.Limit; w.k.now < end; {
			if w.pass(w.k.now + 2*time.Second); w.unrest(1) == "" {
				break
			}
		}
	})
	known := 0
	for _, p := range w.live {
		for _, d := range p.n.disk.history {
			known += onesCount(d.open | d.done)
		}
	}
	u.Known = float64(known) / float64(len(w.live))
	u.Rest = phase(func() { w.pass(w.k.now + each) })
	faults := meshFaults{w: w}
	faults.goes()
	w.pass(w.k.now + 30*time.Second)
	u.Churn = phase(func() { w.pass(w.k.now + each) })
	return u
}
