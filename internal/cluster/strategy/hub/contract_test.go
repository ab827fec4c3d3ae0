package hub_test

import (
	"testing"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/hub"
	"kumo/internal/cluster/strategy/strategytest"
)

func TestContract(t *testing.T) {
	for name, cfg := range map[string]hub.Config{"lan": hub.LAN(), "wan": hub.WAN(),
		"paper": {Config: central.Config{FetchFirst: true}, ProbeAll: true}} {
		t.Run(name, func(t *testing.T) {
			strategytest.Run(t, func() strategy.Strategy {
				cfg.Self = "n3~1"
				return hub.New(cfg)
			})
		})
	}
}
