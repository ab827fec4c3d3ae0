package node_test

import (
	"hash/fnv"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/hub"
)

// withHub runs nodes with a control unit. Each node reaches two thirds of the hosts.
func withHub(w *world) {
	w.mind = func(self strategy.Node) strategy.Strategy {
		cfg := hub.LAN()
		cfg.Self = self
		return hub.New(cfg)
	}
	w.apart = func(node, host string) bool {
		h := fnv.New32a()
		_, _ = h.Write([]byte(node + " " + host))
		return h.Sum32()%3 == 0
	}
}

func TestHubCrawls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 40, 20)
		withHub(w)
		nodes := together(t, w, "a", "b", "c")
		must(t, w.control.Start(t.Context(), nil, w.seeds(3)))
		ends(t, nil, nodes...)
		w.check(1)
		wrong := 0
		for url, all := range w.fetched {
			if by := all[0].by.Name(); w.apart(by, hostOf(url)) {
				wrong++
			}
		}
		if few := 800 / 27 * 3; wrong > few { // one of 27 hosts is reached by no node
			t.Errorf("%d of 800 pages were fetched by nodes that do not reach their hosts", wrong)
		}
	})
}

func TestHubOverABusThatLosesAndDelays(t *testing.T) { overABadBus(t, 0.3, withHub) }

// TestWhoJoinsLateGetsHosts: a node joins when all hosts are owned and no new ones are found.
func TestWhoJoinsLateGetsHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 60, 200)
		withHub(w)
		w.apart = nil
		nodes := together(t, w, "a", "b")
		must(t, w.control.Start(t.Context(), nil, w.seeds(60)))
		eventually(t, "some of it is fetched", func() bool { return w.count() > 600 })
		c := w.start("c", "1")
		begun := time.Now()
		eventually(t, "the third has hosts", func() bool { return c.figures().Hosts >= 15 })
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("that took %v", took)
		}
		ends(t, nil, append(nodes, c)...)
		w.check(1)
	})
}

// TestTheControlUnitDies: the control unit dies, and its successor leaves.
func TestTheControlUnitDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 100, 80)
		withHub(w)
		nodes := together(t, w, "a", "b", "c")
		a, b, c := nodes[0], nodes[1], nodes[2]
		must(t, w.control.Start(t.Context(), nil, w.seeds(3)))
		eventually(t, "a third of it is fetched", func() bool { return w.count() > 600 })
		a.crash()
		anew := w.start("a", "2")
		eventually(t, "two thirds of it are fetched", func() bool { return w.count() > 1200 })
		b.n.Leave()
		ends(t, node.ErrLeft, b)
		ends(t, nil, c, anew)
		w.check(1)
	})
}
