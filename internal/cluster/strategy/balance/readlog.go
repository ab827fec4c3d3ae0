package balance

import (
	"bytes"

	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// ReadLog reads a leader's log. It calls f with each host of its table, in no particular order, until f returns false,
// and returns the samples in the log, the oldest first. read must call its argument with all entries of the log.
func ReadLog(key hosttable.Key, read func(func(number uint64, data []byte) error) error,
	f func(central.Host) bool) ([]model.Sample, error) {
	var s samples
	if err := central.ReadTable(key, &s, read, f); err != nil {
		return nil, err
	}
	return s.all(), nil
}

// TrainModel returns the trained model that a new leader with this Config derives from samples.
func TrainModel(c Config, all []model.Sample) *model.Model {
	cfg := model.Config{Seed: c.Seed, MaxSamples: maxSamples}
	if l := c.Learning; c.Splitter == Paper {
		cfg.Paper, cfg.Hidden, cfg.Rate, cfg.Threshold = true, l.Hidden, l.Rate, l.Threshold
	}
	m := model.New(cfg)
	for _, s := range all {
		_ = m.Add(s) // checked when it was written or read
	}
	m.Train(firstEpochs)
	return m
}

// EncodeSamples encodes samples as [strategy.UserData], from which a leader starts. If there are too many, the last
// ones are used.
func EncodeSamples(all []model.Sample) ([]byte, error) {
	var b bytes.Buffer
	err := model.WriteJSON(&b, all[max(0, len(all)-maxSamples):])
	return b.Bytes(), err
}

func decodeSamples(data []byte) (all []model.Sample) {
	for s, err := range model.ReadJSON(bytes.NewReader(data)) {
		if err != nil || len(all) == maxSamples {
			break
		}
		all = append(all, s)
	}
	return all
}
