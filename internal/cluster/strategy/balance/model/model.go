package model

import (
	"cmp"
	"math"
	"math/rand/v2"
)

// A Config says how a model learns. What is 0 has its default; nothing may be negative.
type Config struct {
	Hidden     int     // units of the hidden layer; 0: 13
	Rate       float64 // learning rate, of Adam's steps; 0: 0.02
	Decay      float64 // of weights, a share of each step; 0: 0.003
	Threshold  float64 // training stops at a mean of E below it; 0: 1e-6
	MaxSamples int     // the most that are kept, at least 8; 0: 2,000
	MinSamples int     // samples to learn from without which there is no network; 0: DefaultMinSamples
	Seed       uint64  // of the first weights, of the order of examples, and of what is kept and held back
}

// DefaultMinSamples is a Config's Least if nothing is said.
const DefaultMinSamples = 20

func (c Config) withDefaults() Config {
	c.Hidden, c.MaxSamples, c.MinSamples = cmp.Or(
		c.Hidden,
		13,
	), cmp.Or(
		c.MaxSamples,
		2000,
	), cmp.Or(
		c.MinSamples,
		DefaultMinSamples,
	)
	c.Rate, c.Decay, c.Threshold = cmp.Or(c.Rate, 0.02), cmp.Or(c.Decay, 0.003), cmp.Or(c.Threshold, 1e-6)
	return c
}

// A Report is what the last training came to. Errors are of the samples held back, which nothing was learnt from: root
// mean squares of the logarithm of predicted by true seconds, so that 0.1 is about 10 %.
type Report struct {
	Trained  int     `json:"trained"`       // samples learnt from; 0: too few, there is no network
	HeldBack int     `json:"held_back"`     // samples held back; if there are none, so are errors
	Epochs   int     `json:"epochs"`        // how often each was shown
	Loss     float64 `json:"loss"`          // mean of E in the last epoch, of scaled logarithms
	Error    float64 `json:"error"`         // of the network, with what it knows of single nodes
	ByPace   float64 `json:"error_by_pace"` // of each node's own pages a second, without a network
}

// A Model predicts how long nodes take. It is used by one goroutine at a time; what Time returns, by any.
type Model struct {
	config  Config
	samples reservoir
	scaling scaling
	net     *network // nil: not trained yet
	report  Report
	pace    map[string]float64 // pages a second, of nodes with samples
	factor  map[string]float64 // a node's times by what the network says of such machines
}

// New is a model that has seen nothing.
func New(c Config) *Model {
	c = c.withDefaults()
	return &Model{
		config: c, samples: newReservoir(c.MaxSamples, c.Seed), scaling: newScaling(),
		pace: map[string]float64{}, factor: map[string]float64{},
	}
}

// Add takes in how long an assignment took. What the model knows of that node changes at once, the network with the
// next training. An error is one of [Sample.Check].
func (m *Model) Add(s Sample) error {
	if err := s.Check(); err != nil {
		return err
	}
	if m.samples.add(s) {
		m.updateNodes()
	} else {
		m.updateNode(s.Node)
	}
	return nil
}

// MaxSamples are those that are kept, in the order in which they came.
func (m *Model) Samples() (samples []Sample) {
	for _, rec := range m.samples.records() {
		samples = append(samples, rec.Sample)
	}
	return samples
}

// Train shows the network all samples, but those held back, so many times, or until its error is below the threshold.
// It goes on from the weights that it has. 200 epochs make a network from the beginning; 20 are enough for a few more
// samples. An epoch over 1,000 samples takes half a millisecond; a training has some milliseconds beside its epochs.
func (m *Model) Train(epochs int) Report {
	training := m.samples.training()
	if len(training) < m.config.MinSamples {
		return m.report
	}
	rng := rand.New(rand.NewPCG(m.config.Seed, m.samples.count))
	wider := m.scaling
	for _, s := range training {
		wider.add(s)
	}
	if m.net == nil {
		m.net = newNetwork(m.config.Hidden, rng)
	} else {
		m.net.rescale(&m.scaling, &wider)
	}
	m.scaling = wider
	examples := make([]example, len(training))
	for i, s := range training {
		examples[i] = m.scaling.example(s)
	}
	m.report = Report{Trained: len(training)}
	m.report.Epochs, m.report.Loss = newTrainer(m.net, m.config.Decay).
		run(examples, epochs, m.config.Rate, m.config.Threshold, rng)
	m.updateNodes()
	m.measureErrors()
	return m.report
}

// Report is what the last training came to.
func (m *Model) Report() Report { return m.report }

// measureErrors fills in the errors of the report.
func (m *Model) measureErrors() {
	var learnt, paced float64
	n := 0
	for _, rec := range m.samples.records() {
		pace := m.pace[rec.Node]
		if !rec.Held || pace == 0 {
			continue
		}
		n++
		truth := math.Log(rec.Seconds)
		learnt += square(math.Log(m.nodeTime(rec.Node, rec.Machine)(rec.URLs)) - truth)
		paced += square(math.Log(float64(rec.URLs)/pace) - truth)
	}
	if m.report.HeldBack = n; n > 0 {
		m.report.Error, m.report.ByPace = math.Sqrt(learnt/float64(n)), math.Sqrt(paced/float64(n))
	}
}

func square(v float64) float64 { return v * v }
