package model

import (
	"math"
	"math/rand/v2"
)

// A network has one hidden layer of tanh units and one linear output. The weights are in one slice: for each unit those
// of its inputs, its bias, and the weight from the unit to the output; after all units the output's bias.
//
// Unless it is free, as in the paper, the weights from the number of URLs to a unit, and from a unit to the output, are
// never negative. So the output never decreases with the number of URLs. This does not restrict the other inputs: a
// unit with all signs before and after it inverted is the same unit.
type network struct {
	units   int
	free    bool
	weights []float64
}

// Offsets of a unit's weights after those of its inputs.
const (
	bias   = inputs
	out    = inputs + 1
	stride = inputs + 2
)

func newNetwork(units int, free bool, rng *rand.Rand) *network {
	n := &network{units, free, make([]float64, units*stride+1)}
	for u := range units {
		w := n.unit(u)
		for i := range inputs {
			w[i] = rng.NormFloat64()
		}
		w[bias] = rng.NormFloat64() / 2
		w[out] = math.Abs(rng.NormFloat64()) / math.Sqrt(float64(units))
	}
	n.constrain()
	return n
}

func (n *network) unit(u int) []float64 { return n.weights[u*stride : (u+1)*stride] }

// outBias returns the output's bias.
func (n *network) outBias() *float64 { return &n.weights[n.units*stride] }

// constrain clamps the weights that must not be negative.
func (n *network) constrain() {
	if n.free {
		return
	}
	for u := range n.units {
		w := n.unit(u)
		w[urls], w[out] = max(w[urls], 0), max(w[out], 0)
	}
}

// sum returns the input of a unit's activation.
func sum(w []float64, x *[inputs]float64) float64 {
	s := w[bias]
	for i, xi := range x {
		s += w[i] * xi
	}
	return s
}

// backPropagate adds the gradient of E = (y - output)²/2 to gradient, and returns E. hidden is a buffer for the units'
// outputs.
func (n *network) backPropagate(e *example, gradient, hidden []float64) float64 {
	o := *n.outBias()
	for u := range n.units {
		w := n.unit(u)
		hidden[u] = math.Tanh(sum(w, &e.x))
		o += w[out] * hidden[u]
	}
	d := o - e.y // dE/do
	for u := range n.units {
		w, g, h := n.unit(u), gradient[u*stride:(u+1)*stride], hidden[u]
		g[out] += d * h
		in := d * w[out] * (1 - h*h) // tanh' = 1 - tanh²
		g[bias] += in
		for i, xi := range e.x {
			g[i] += in * xi
		}
	}
	gradient[n.units*stride] += d
	return d * d / 2
}

// maxGrowth is the maximum growth of a span for which the weights are adjusted. Weights trained on a narrower span mean
// nothing for a much wider one.
const maxGrowth = 16

// rescale adjusts the weights so that within the spans of from, the network returns the same times with the scaling to.
func (n *network) rescale(from, to *scaling) {
	for u := range n.units {
		w := n.unit(u)
		for i := range inputs {
			old, now := from.Inputs[i], to.Inputs[i]
			switch {
			case old == now || now.width() == 0: // as before, or the input is always 0
			case old.width() < now.width()/maxGrowth:
				w[bias] -= w[i] * now.scale(old.Min)
			default:
				w[bias] += w[i] * (now.Min - old.Min) / old.width()
				w[i] *= now.width() / old.width()
			}
		}
		w[out] *= from.seconds() / to.seconds()
	}
	*n.outBias() = (from.Seconds.Min + *n.outBias()*from.seconds() - to.Seconds.Min) / to.seconds()
}
