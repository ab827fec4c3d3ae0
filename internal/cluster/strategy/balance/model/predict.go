package model

import (
	"maps"
	"math"
	"slices"
)

// A Basis is what a prediction rests on.
type Basis uint8

// What predictions may rest on, the worst first.
const (
	Nothing Basis = iota // no sample of any node: a second a page
	Mean                 // the mean of other nodes' pages a second, because this one has no samples
	Pace                 // the node's own pages a second
	Network              // the network
)

// String is a word for people.
func (b Basis) String() string {
	return [...]string{"nothing", "mean", "pace", "learnt"}[min(b, Network)]
}

// minHeldBack samples held back tell which of two errors is the less.
const minHeldBack = 3

// Time is how long a node with such a machine takes for n URLs, in seconds: 0 for none, and, but for rounding, never
// less for more. It says what the model knows now, and stays as it is when the model learns.
func (m *Model) Time(node string, machine Machine) (func(n int) float64, Basis) {
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

// atPace is the time at so many pages a second.
func atPace(pace float64) func(n int) float64 {
	return func(n int) float64 { return max(float64(n), 0) / pace }
}

func (m *Model) meanPace() float64 {
	var sum float64
	for _, node := range slices.Sorted(maps.Keys(m.pace)) { // a sum depends on the order
		sum += m.pace[node]
	}
	return sum / float64(len(m.pace))
}

// nodeTime is the time by the network and what is known of the node.
func (m *Model) nodeTime(node string, machine Machine) func(n int) float64 {
	if factor, known := m.factor[node]; known {
		return m.machineTime(machine, factor)
	}
	return m.machineTime(machine, 1)
}

// machineTime is the network's time for a machine, times a factor. Below the least and above the greatest number of URLs
// that was learnt from, pages a second stay as they are there.
func (m *Model) machineTime(machine Machine, factor float64) func(n int) float64 {
	type unit struct{ rest, perURL, out float64 }
	units, x := make([]unit, m.net.units), m.scaling.machine(machine)
	for u := range units {
		w := m.net.unit(u)
		units[u] = unit{sum(w, &x), w[urls], w[out]}
	}
	scaling, constant := m.scaling, *m.net.outBias()
	at := func(n float64) float64 {
		o, x := constant, scaling.urls(n)
		for _, u := range units {
			o += u.out * math.Tanh(u.rest+u.perURL*x)
		}
		return factor * scaling.unscale(o)
	}
	span := scaling.Inputs[urls]
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
