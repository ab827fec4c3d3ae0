package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// version is that of what Encode writes.
const version = 1

// ErrVersion says that a model was saved in a form that this build does not read. Its samples may still be had from a
// file of samples.
var ErrVersion = errors.New("a model of running times in another form")

// saved is a model as JSON.
type saved struct {
	Version int       `json:"version"`
	Units   int       `json:"units,omitempty"` // 0: no network
	Weights []float64 `json:"weights,omitempty"`
	Scaling scaling   `json:"scaling"`
	Report  Report    `json:"report"`
	Count   uint64    `json:"count"` // samples that came
	Samples []record  `json:"samples"`
}

// Encode is the model as JSON, with its version.
func (m *Model) Encode() ([]byte, error) {
	s := saved{
		Version: version, Scaling: m.scaling, Report: m.report, Count: m.samples.count, Samples: m.samples.records(),
	}
	if m.net != nil {
		s.Units, s.Weights = m.net.units, m.net.weights
	}
	return json.Marshal(s)
}

// Decode reads what Encode wrote. How the model goes on is the config's to say; if it asks for another size of the
// hidden layer, samples are kept, and the network is made anew by the next training. An error wraps ErrVersion if it
// is that.
func Decode(data []byte, c Config) (*Model, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("a saved model of running times: %w", err)
	}
	if head.Version != version {
		return nil, fmt.Errorf("%w: it has version %d, this build reads %d", ErrVersion, head.Version, version)
	}
	var s saved
	err := json.Unmarshal(data, &s)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return nil, fmt.Errorf("a saved model of running times: %w", err)
	}
	m := New(c)
	m.samples.restore(s.Samples, s.Count)
	if s.Units == m.config.Hidden {
		m.scaling, m.report, m.net = s.Scaling, s.Report, &network{s.Units, s.Weights}
	}
	m.learnNodes()
	return m, nil
}

// maxWeight is more than any weight that training comes to.
const maxWeight = 1e9

func (s *saved) check() error {
	if s.Units < 0 || s.Units > len(s.Weights) || s.Units > 0 && len(s.Weights) != s.Units*stride+1 {
		return fmt.Errorf("%d weights for %d units", len(s.Weights), s.Units)
	}
	for _, w := range s.Weights {
		if !(math.Abs(w) <= maxWeight) {
			return fmt.Errorf("a weight of %v", w)
		}
	}
	net := network{s.Units, s.Weights}
	for u := range s.Units {
		if w := net.unit(u); w[urls] < 0 || w[out] < 0 {
			return errors.New("times that fall with the number of URLs")
		}
	}
	reach := math.Log(maxFigure) + 1
	for _, span := range append(s.Scaling.Inputs[:], s.Scaling.Seconds) {
		if span != noSpan && !(-reach <= span.Min && span.Min <= span.Max && span.Max <= reach) {
			return fmt.Errorf("logarithms from %v to %v", span.Min, span.Max)
		}
	}
	if s.Units > 0 && s.Scaling.Inputs[urls] == noSpan {
		return errors.New("a network that was shown nothing")
	}
	last := uint64(0)
	for _, rec := range s.Samples {
		if rec.Number <= last || rec.Number > s.Count {
			return fmt.Errorf("sample %d of %d behind sample %d", rec.Number, s.Count, last)
		}
		last = rec.Number
		if err := rec.Check(); err != nil {
			return err
		}
	}
	return nil
}
