package sim

import (
	"fmt"
	"testing"
	"time"

	"kumo/internal/lab/testmain"
)

// quietMesh is a few nodes at which nothing goes wrong but what a test does, crawling for so long.
func quietMesh(seed uint64, nodes, pages int, crawling time.Duration) *meshWorld {
	cfg := smallMesh()
	cfg.Nodes, cfg.Pages, cfg.FaultEvery, cfg.Loss, cfg.Busy, cfg.Shuffle = nodes, pages, -1, -1, false, true
	w := newMeshWorld(cfg.withDefaults(), seed)
	for i := range cfg.Nodes {
		w.k.after(time.Duration(i)*w.cfg.Spread/time.Duration(cfg.Nodes), func() { w.join() })
	}
	w.runUntil(w.cfg.Spread + w.cfg.FaultDelay)
	w.seed()
	w.runUntil(w.k.now + crawling)
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
		w := quietMesh(seed, 8, 12, 20*time.Second)
		sleeper := w.live[3]
		sleeper.paused = true
		w.runUntil(w.k.now + 5*time.Minute)
		if n, _ := w.coverage.missing(w.web); n > 0 {
			t.Fatalf("seed %d: the others have not fetched %d pages", seed, n)
		}
		w.endOthers(sleeper)
		sleeper.resume()
		before := sleeper.requests
		w.runUntil(w.k.now + 15*time.Second)
		if n := sleeper.requests - before; n > 0 {
			t.Errorf("seed %d: who wakes alone sends %d requests at once", seed, n)
		}
		w.runUntil(w.k.now + time.Minute)
		if n := sleeper.requests - before; n == 0 {
			t.Errorf("seed %d: who wakes alone never goes on", seed)
		}
	}
}

// TestWhoIsLeftGoesOnWithItsOwn ends one of two nodes while they crawl: the other one goes on with what it had to
// fetch, and with the rest a little later.
func TestWhoIsLeftGoesOnWithItsOwn(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		w := quietMesh(seed, 2, 12, 20*time.Second)
		left := w.live[1]
		own := left.view
		asks := func(since moment) (mine, others int) {
			for h, v := range w.lastVisit {
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
		w.runUntil(w.k.now + 8*time.Second) // it has noticed
		since := w.k.now
		w.runUntil(w.k.now + 6*time.Second)
		if mine, others := asks(since); mine == 0 || others > 0 {
			t.Errorf("seed %d: who is left alone asks %d hosts of its own at first, and %d of others", seed, mine, others)
		}
		w.runUntil(w.k.now + time.Minute)
		if _, others := asks(since); others == 0 {
			t.Errorf("seed %d: who is left alone never takes what others had", seed)
		}
	}
}

// TestACutThatHealsCostsLittle cuts the network in two while a crawl goes on. Some seconds after it is whole again
// neither part fetches what the other one has fetched meanwhile.
func TestACutThatHealsCostsLittle(t *testing.T) {
	const (
		cutFor = 40 * time.Second
		heals  = 15 * time.Second // until nodes know of each other again, and have told what they know
		after  = 45 * time.Second
	)
	seeds := testmain.Rounds(3, 20)
	var cutOff, healing, whole count
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		w := quietMesh(seed, 10, 32, 20*time.Second)
		c := &partition{isolated: map[int]bool{}, out: true, in: true}
		for i := range 5 {
			c.isolated[w.live[2*i].n.place] = true
		}
		w.net.partitions = append(w.net.partitions, c)
		cutOff.add(w, cutFor)
		w.net.heal(c)
		healing.add(w, heals)
		whole.add(w, after)
	}
	t.Logf("%d cuts of %v: %v; %v after that: %v; %v after that: %v", seeds, cutFor, cutOff, heals, healing, after, whole)
	if whole.twice > 2*seeds {
		t.Error("that is too many")
	}
}

// A count is requests, and how many of them are for pages that were fetched before.
type count struct{ requests, twice int }

func (c count) String() string {
	return fmt.Sprintf("%d requests, %d for pages that were fetched before", c.requests, c.twice)
}

// add counts while time goes on.
func (c *count) add(w *meshWorld, d time.Duration) {
	twice := func() (n int) {
		for _, d := range w.figures.Duplicates {
			n += d
		}
		return n
	}
	c.requests, c.twice = c.requests-w.figures.Requests, c.twice-twice()
	w.runUntil(w.k.now + d)
	c.requests, c.twice = c.requests+w.figures.Requests, c.twice+twice()
}

// TestNodesJoinAtOnce lets many nodes come to a few at once, while a crawl goes on over a network that loses messages:
// servers see little of it.
func TestNodesJoinAtOnce(t *testing.T) {
	const joins = 8
	seeds := testmain.Rounds(4, 40)
	var joining count
	slips, hasty := 0, 0
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		w := quietMesh(seed, 3, 32, 20*time.Second)
		w.net.loss = 0.05
		before := w.figures
		for i := range joins {
			w.k.after(time.Duration(i)*2*time.Second/joins, func() { w.join() })
		}
		joining.add(w, time.Minute)
		slips += w.figures.Overlapping - before.Overlapping
		hasty += w.figures.TooEarly - before.TooEarly
	}
	t.Logf("%d times %d nodes join: %v, %d while another node asks, %d too soon after one", seeds, joins, joining, slips,
		hasty)
	if joining.twice > seeds*joins/5 || slips > 0 || hasty > 0 { // none is seen in 400 seeds
		t.Error("that is too many")
	}
}
