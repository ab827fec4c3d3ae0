package hub_test

import (
	"testing"

	"kumo/internal/strategy"
	"kumo/internal/strategy/central"
	"kumo/internal/strategy/hub"
	"kumo/internal/strategy/strategytest"
)

func TestContract(t *testing.T) {
	for name, cfg := range map[string]hub.Config{"lan": hub.LAN(), "wan": hub.WAN(),
		"paper": {Config: central.Config{FetchFirst: true}, AskAll: true}} {
		t.Run(name, func(t *testing.T) {
			strategytest.Run(t, func() strategy.Strategy {
				cfg.Self = "n3~1"
				return hub.New(cfg)
			})
		})
	}
}
