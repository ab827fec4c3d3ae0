package cluster

import (
	"kumo/internal/app/admin"
	"kumo/internal/cluster/strategy/balance"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// learner is how a crawl with the strategy balance places hosts, and what its log has taught.
func learner(cfg *balance.Config, key hosttable.Key) *admin.Placement {
	return &admin.Placement{Strategy: admin.Balance,
		Table: func(read func(func(uint64, []byte) error) error, each func(central.Host) bool) error {
			_, err := balance.Look(key, read, each)
			return err
		},
		Learnt: func(read func(func(uint64, []byte) error) error) (*model.Model, []model.Sample, error) {
			samples, err := balance.Look(key, read, func(central.Host) bool { return false })
			if err != nil {
				return nil, nil, err
			}
			return balance.Learn(*cfg, samples), samples, nil
		}}
}
