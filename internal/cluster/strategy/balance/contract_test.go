package balance_test

import (
	"testing"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance"
	"kumo/internal/cluster/strategy/strategytest"
)

func TestContract(t *testing.T) {
	for _, name := range balance.Splitters() {
		t.Run(name, func(t *testing.T) {
			strategytest.Run(t, func() strategy.Strategy {
				cfg := balance.LAN()
				cfg.Self = "n3~1"
				cfg.Splitter, _ = balance.ParseSplitter(name)
				return balance.New(cfg)
			})
		})
	}
}
