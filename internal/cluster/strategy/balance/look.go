package balance

import (
	"bytes"

	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// ReadLog reads a leader's log, as it is now: it calls f with the hosts of its table, in no order, until f returns false,
// and returns the samples that the log has, the oldest first. read calls its argument with all entries of the log.
func ReadLog(key hosttable.Key, read func(func(number uint64, data []byte) error) error,
	f func(central.Host) bool) ([]model.Sample, error) {
	var s samples
	if err := central.ReadTable(key, &s, read, f); err != nil {
		return nil, err
	}
	return s.all(), nil
}

// TrainModel makes the model that a new leader has of such samples, whose Config this is, trained.
func TrainModel(c Config, all []model.Sample) *model.Model {
	m := model.New(model.Config{Hidden: c.Hidden, Seed: c.Seed, MaxSamples: maxSamples})
	for _, s := range all {
		_ = m.Add(s) // who has written or read it has checked it
	}
	m.Train(firstEpochs)
	return m
}

// EncodeSamples is what [strategy.Given] has for a leader that is to begin with samples, the last of which count most.
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
