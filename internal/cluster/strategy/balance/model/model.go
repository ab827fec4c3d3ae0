package model

import (
	"cmp"
	"math"
	"math/rand/v2"
)

// A Config configures a model's training. Zero values mean the defaults given; no value may be negative.
type Config struct {
	Paper      bool    // the paper's network, scaling and training
	Hidden     int     // units of the hidden layer; DefaultHidden
	Rate       float64 // learning rate; 0.02, with Paper PaperRate
	Decay      float64 // weight decay, relative to a step; 0.003, with Paper none
	Threshold  float64 // mean of E below which training stops; 1e-6, with Paper PaperThreshold
	MaxSamples int     // maximum number of samples kept, at least 8; 2,000
	MinSamples int     // training samples needed for a network; DefaultMinSamples
	Seed       uint64  // for the initial weights and the choice and order of samples
}

// Defaults of a Config.
const (
	DefaultHidden     = 13
	DefaultMinSamples = 20
)

func (c Config) withDefaults() Config {
	if c.Paper {
		c.Rate, c.Threshold = cmp.Or(c.Rate, PaperRate), cmp.Or(c.Threshold, PaperThreshold)
	}
	c.Hidden, c.MaxSamples = cmp.Or(c.Hidden, DefaultHidden), cmp.Or(c.MaxSamples, 2000)
	c.MinSamples = cmp.Or(c.MinSamples, DefaultMinSamples)
	c.Rate, c.Decay, c.Threshold = cmp.Or(c.Rate, 0.02), cmp.Or(c.Decay, 0.003), cmp.Or(c.Threshold, 1e-6)
	return c
}

// A Report is the result of the last training. Errors are measured on the samples held back: root mean squares of the
// logarithm of predicted by true seconds, so that 0.1 is about 10 %.
type Report struct {
	Trained  int     `json:"trained"`       // training samples; 0: too few, there is no network
	HeldBack int     `json:"held_back"`     // samples held back; without any, errors are 0
	Epochs   int     `json:"epochs"`        // epochs trained
	Loss     float64 `json:"loss"`          // mean of E in the last epoch, in scaled logarithms
	Error    float64 `json:"error"`         // of the network with each node's correction
	ByPace   float64 `json:"error_by_pace"` // of each node's own pages/s, without a network
}

// A Model predicts how long nodes take. It is not safe for concurrent use, but the functions returned by Time are.
type Model struct {
	config  Config
	samples reservoir
	scaling scaling
	net     *network // nil: not trained yet
	report  Report
	pace    map[string]float64 // pages/s of nodes with samples
	factor  map[string]float64 // correction factors of nodes with samples
}

// New returns a model without samples.
func New(c Config) *Model {
	c = c.withDefaults()
	return &Model{
		config: c, samples: newReservoir(c.MaxSamples, c.Seed), scaling: newScaling(c.Paper),
		pace: map[string]float64{}, factor: map[string]float64{},
	}
}

// Add adds the result of an assignment. The data about the node changes at once, the network with the next training.
// Errors are those of [Sample.Check].
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

// Samples returns the samples that are kept, the oldest first.
func (m *Model) Samples() (samples []Sample) {
	for _, rec := range m.samples.records() {
		samples = append(samples, rec.Sample)
	}
	return samples
}

// Train trains the network for a number of epochs on all samples that are not held back, or until its error is below
// the threshold. It continues from the current weights. 200 epochs are enough from the start, 20 after a few new
// samples. An epoch over 1,000 samples takes half a millisecond; a training takes a few milliseconds more.
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
		m.net = newNetwork(m.config.Hidden, m.config.Paper, rng)
	} else {
		m.net.rescale(&m.scaling, &wider)
	}
	m.scaling = wider
	examples := make([]example, len(training))
	for i, s := range training {
		examples[i] = m.scaling.example(s)
	}
	m.report = Report{Trained: len(training)}
	train := newTrainer(m.net, m.config.Decay).run
	if m.config.Paper {
		train = m.net.descend
	}
	m.report.Epochs, m.report.Loss = train(examples, epochs, m.config.Rate, m.config.Threshold, rng)
	m.updateNodes()
	m.measureErrors()
	return m.report
}

// Report returns the result of the last training.
func (m *Model) Report() Report { return m.report }

// measureErrors sets the errors in the report.
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
