package node_test

import (
	"testing"
	"testing/synctest"

	"kumo/internal/app/node"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance"
)

// withBalance runs nodes with a master that pools pending URLs.
func withBalance(w *world) {
	w.mind = func(self strategy.Node) strategy.Strategy {
		cfg := balance.LAN()
		cfg.Self = self
		return balance.New(cfg)
	}
}

// TestBalanceCrawls: the master dies, another node joins, and one leaves; nothing is lost.
func TestBalanceCrawls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 60, 40)
		withBalance(w)
		nodes := together(t, w, "a", "b", "c")
		a, b, c := nodes[0], nodes[1], nodes[2]
		must(t, w.control.Start(t.Context(), nil, w.seeds(3)))
		eventually(t, "a third of it is fetched", func() bool { return w.count() > 800 })
		a.crash()
		anew := w.start("a", "2")
		eventually(t, "two thirds of it are fetched", func() bool { return w.count() > 1600 })
		b.n.Leave()
		ends(t, node.ErrLeft, b)
		ends(t, nil, c, anew)
		w.check(1)
	})
}

func TestBalanceOverABusThatLosesAndDelays(t *testing.T) { overABadBus(t, 0.3, withBalance) }
