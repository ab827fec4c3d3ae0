package shard_test

import (
	"testing"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/shard"
	"kumo/internal/cluster/strategy/strategytest"
)

func TestContract(t *testing.T) {
	for _, second := range allSeconds {
		t.Run(second.String(), func(t *testing.T) {
			strategytest.Run(t, func() strategy.Strategy {
				return shard.New(shard.Config{Slots: 12, Second: second, Seed: 1})
			})
		})
	}
}
