package sim

import (
	"strings"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/hub"
	"kumo/internal/cluster/strategy/shard"
)

// Strategies returns the names that Use accepts: Igloo's two-level hash with each of its second levels; DSpider's
// control unit, in kumo's version and the paper's; splits by predicted times with each splitter; and mesh, in
// kumo's version and the paper's.
func Strategies() []string {
	return []string{"shard", "shard/paper", "shard/jump", "shard/ring", "hub", "hub/paper", "balance", "balance/paper",
		"balance/even", "balance/hash", "mesh", "mesh/paper"}
}

// Use sets the strategy by name, with twice as many slots as nodes at the start. It panics if the name is not in
// Strategies.
func (c *Config) Use(name string) {
	if c.centerless, c.paper = strings.HasPrefix(name, "mesh"), name == "mesh/paper"; c.centerless {
		return
	}
	if c.CountOnly = name == "hub/paper"; c.CountOnly || name == "hub" {
		c.Strategy, c.Slot = func(self strategy.Node) strategy.Strategy {
			cfg := hub.LAN()
			if c.Timing.Beat > member.LAN().Beat {
				cfg = hub.WAN()
			}
			cfg.Self, cfg.FetchFirst, cfg.ProbeAll = self, name == "hub/paper", name == "hub/paper"
			return hub.New(cfg)
		}, nil
		c.DecodeDecision = central.EachChange
		return
	}
	if way, is := strings.CutPrefix(name, "balance"); is {
		splitter, err := balance.ParseSplitter(strings.TrimPrefix(way, "/"))
		if err != nil {
			panic(err)
		}
		c.Strategy, c.Slot = func(self strategy.Node) strategy.Strategy {
			cfg := balance.LAN()
			if c.Timing.Beat > member.LAN().Beat {
				cfg = balance.WAN()
			}
			cfg.Self, cfg.Splitter = self, splitter
			return balance.New(cfg)
		}, nil
		c.DecodeDecision, c.MinStay, c.VarySpeeds = central.EachChange, 10*time.Second, true
		return
	}
	cfg := shard.Config{Slots: 2 * max(c.Nodes, 1)}
	if second := name[min(len(name), len("shard/")):]; second != "" {
		var err error
		if cfg.Second, err = shard.ParseSecond(second); err != nil {
			panic(err)
		}
	}
	c.Strategy = func(strategy.Node) strategy.Strategy { return shard.New(cfg) }
	c.Slot = cfg.FreeSlot
}
