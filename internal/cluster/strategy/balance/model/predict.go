package model

import (
	"maps"
	"math"
	"slices"
)

// A Basis is the source of a prediction.
type Basis uint8

// Sources of predictions, the worst first.
const (
	Nothing Basis = iota // no samples: one page per second
	Mean                 // mean pages/s of other nodes, since this one has no samples
	Pace                 // the node's own pages/s
	Network              // the neural network
)

// String returns the basis as text, as in reports.
func (b Basis) String() string {
	return [...]string{"nothing", "mean", "pace", "learnt"}[min(b, Network)]
}

// minHeldBack is the number of held-back samples needed to compare two errors.
const minHeldBack = 3

// Time returns a node's time for n URLs on a machine, in seconds. It is 0 for none, and, except for rounding, never
// decreases with n. The function does not change when the model learns.
func (m *Model) Time(node string, machine Machine) (func(n int) float64, Basis) {
	if m.config.Paper {
		return m.paperTime(machine)
	}
	pace, known := m.pace[node]
	worse := m.report.HeldBack < minHeldBack || m.report.ByPace < m.report.Error
	switch {
	case m.net != nil && !(known && worse):
		return m.nodeTime(node, machine), Network
	case known:
		return atPace(pace), Pace
	case len(m.pace) > 0:
		return atPace(m.meanPace()), Mean
	default:
		return atPace(1), Nothing
	}
}

// atPace returns the time at a number of pages per second.
func atPace(pace float64) func(n int) float64 {
	return func(n int) float64 { return max(float64(n), 0) / pace }
}

func (m *Model) meanPace() float64 {
	var sum float64
	for _, node := range slices.Sorted(maps.Keys(m.pace)) { // in a fixed order, since float sums depend on it
		sum += m.pace[node]
	}
	return sum / float64(len(m.pace))
}

// nodeTime returns the network's time with the node's correction.
func (m *Model) nodeTime(node string, machine Machine) func(n int) float64 {
	if factor, known := m.factor[node]; known {
		return m.machineTime(machine, factor)
	}
	return m.machineTime(machine, 1)
}

// machineTime returns the network's time for a machine, times a factor. Outside the range of the numbers of URLs in the
// samples, the time per page is that of the nearer end.
func (m *Model) machineTime(machine Machine, factor float64) func(n int) float64 {
	output := m.output(machine)
	at := func(n float64) float64 { return factor * output(n) }
	span := m.scaling.Inputs[urls]
	least, most := math.Round(math.Exp(span.Min)), math.Round(math.Exp(span.Max))
	atLeast, atMost := at(least), at(most)
	return func(n int) float64 {
		switch n := float64(n); {
		case n <= 0:
			return 0
		case n < least:
			return atLeast * (n / least)
		case n > most:
			return atMost * (n / most)
		default:
			return at(n)
		}
	}
}

// output returns the network's output for a machine, in seconds.
func (m *Model) output(machine Machine) func(n float64) float64 {
	type unit struct{ rest, perURL, out float64 }
	units, x := make([]unit, m.net.units), m.scaling.machine(machine)
	for u := range units {
		w := m.net.unit(u)
		units[u] = unit{sum(w, &x), w[urls], w[out]}
	}
	scaling, constant := m.scaling, *m.net.outBias()
	return func(n float64) float64 {
		o, x := constant, scaling.urls(n)
		for _, u := range units {
			o += u.out * math.Tanh(u.rest+u.perURL*x)
		}
		return scaling.unscale(o)
	}
}
