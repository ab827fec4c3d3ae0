package mesh

import (
	"flag"
	"testing"
	"time"
)

var seeds = flag.Uint64("seeds", 20, "seeds of each test of faults")
var firstSeed = flag.Uint64("first", 1, "the first seed")

func (w *world) report() {
	w.t.Logf("seed %d: %v, %d nodes, %d pages, %d fetched twice, %d slips, %.1f messages and %d bytes a page", w.cfg.seed,
		w.now.Sub(w.began).Round(time.Second), len(w.live()), len(w.pages), w.duplicates, w.slips,
		float64(w.messages)/float64(len(w.pages)), w.bytes/len(w.pages))
}

func TestOneNodeCrawlsAlone(t *testing.T) {
	w := newWorld(t, worldConfig{seed: 1, nodes: 1, hosts: 10, pages: 10, backups: 3, delay: time.Millisecond,
		knows: time.Second})
	w.begin()
	w.settle(time.Hour)
	w.judge()
	w.report()
	if w.duplicates > 0 || w.slips > 0 {
		t.Error("something was fetched twice")
	}
}

func TestNodesAtRestFetchAllOnce(t *testing.T) {
	w := newWorld(t, worldConfig{seed: 2, nodes: 10, hosts: 50, pages: 20, backups: 3, delay: 20 * time.Millisecond,
		knows: time.Second})
	w.run(10 * time.Second)
	w.begin()
	w.settle(time.Hour)
	w.judge()
	w.report()
	if w.duplicates > 0 || w.slips > 0 {
		t.Error("something was fetched twice")
	}
}

// TestNothingIsLost lets nodes come, die, come back, lose their disks and sleep while a crawl goes on.
func TestNothingIsLost(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		w := newWorld(t, worldConfig{seed: seed, nodes: 8, hosts: 60, pages: 20, backups: 3, loss: 0.05,
			delay: 30 * time.Millisecond, knows: 10 * time.Second})
		w.run(15 * time.Second)
		w.begin()
		w.faults(30)
		w.settle(time.Hour)
		w.judge()
		w.report()
	}
}

// faults has so many things go wrong, one every eight seconds.
func (w *world) faults(n int) {
	var dead []*simNode
	lost := w.now
	for range n {
		w.run(w.between(time.Second, 15*time.Second))
		live := w.live()
		n := live[w.rng.IntN(len(live))]
		switch what := w.rng.IntN(11); {
		case what < 3 && len(live) > 4:
			n.kill()
			dead = append(dead, n)
		case what < 5 && len(dead) > 0:
			i := w.rng.IntN(len(dead))
			dead[i].start()
			dead = append(dead[:i], dead[i+1:]...)
		case what < 6 && len(live) > 4 && len(dead) < 3 && w.now.Sub(lost) > time.Minute:
			n.kill()
			n.lose()
			lost = w.now
		case what < 7 && len(live) > 4:
			n.leave()
		case what < 9:
			w.join()
		default:
			n.pause(w.between(time.Second, 40*time.Second))
		}
	}
	w.run(time.Minute)
	for _, n := range dead {
		n.start()
	}
}

// TestTheEndIsFound lets nodes crawl to the end, which one of them finds, neither early nor late, with faults too.
func TestTheEndIsFound(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		w := newWorld(t, worldConfig{seed: seed, nodes: 7, hosts: 20, pages: 10, backups: 3, loss: 0.05,
			delay: 30 * time.Millisecond, knows: 10 * time.Second})
		w.run(15 * time.Second)
		w.begin()
		w.faults(6)
		w.ended = nil
		w.settle(time.Hour)
		rest := w.now
		for len(w.ended) == 0 && w.now.Sub(rest) < 2*time.Minute {
			w.run(time.Second)
		}
		if len(w.ended) == 0 {
			t.Fatalf("seed %d: the end is not found in %v", seed, w.now.Sub(rest))
		}
		w.judge()
		if w.ended[0].Sub(rest) > 30*time.Second {
			t.Errorf("seed %d: the end is found after %v", seed, w.ended[0].Sub(rest))
		}
	}
}

// TestTheRecordComesToAll changes the crawl's record here and there, while nodes are away.
func TestTheRecordComesToAll(t *testing.T) {
	w := newWorld(t, worldConfig{seed: 5, nodes: 30, hosts: 1, pages: 1, backups: 3, loss: 0.05,
		delay: 30 * time.Millisecond, knows: 3 * time.Second})
	w.run(15 * time.Second)
	away := w.live()[7]
	away.kill()
	w.run(15 * time.Second)
	w.live()[3].tell(Change{[]byte("one")})
	w.run(10 * time.Second)
	w.live()[20].tell(Change{[]byte("two")})
	w.run(time.Second)
	away.start()
	w.run(2 * time.Minute)
	for _, n := range w.live() {
		if string(n.disk.record.Data) != "two" {
			t.Errorf("%s has %q", n.node, n.disk.record.Data)
		}
	}
	for _, n := range w.live() {
		if len(n.knows) != 30 {
			t.Errorf("%s knows %d", n.node, len(n.knows))
		}
	}
	w.live()[9].tell(Gather{1})
	w.run(30 * time.Second)
	if len(w.gathered) != 1 || w.gathered[0].Nodes != 30 || w.gathered[0].Idle != 30 || w.gathered[0].Missing != 0 {
		t.Errorf("gathered %+v", w.gathered)
	}
}
