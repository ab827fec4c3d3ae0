package sim

import (
	"kumo/internal/strategy"
	"kumo/internal/strategy/shard"
)

// Strategies are the names that Use knows: Igloo's two-level hash, with each of its second levels.
func Strategies() []string { return []string{"shard", "shard/paper", "shard/jump", "shard/ring"} }

// Use sets the strategy by its name, with twice as many slots as there are nodes at the start. It panics if the name is none of Strategies.
func (c *Config) Use(name string) {
	cfg := shard.Config{Slots: 2 * max(c.Nodes, 1)}
	if second := name[min(len(name), len("shard/")):]; second != "" {
		var err error
		if cfg.Second, err = shard.ParseSecond(second); err != nil {
			panic(err)
		}
	}
	c.Strategy = func() strategy.Placer { return shard.New(cfg) }
	c.Slot = cfg.FreeSlot
}
