package model

import (
	"math"
	"math/rand/v2"
)

// An example is a sample in the network's scaling.
type example struct {
	x [inputs]float64
	y float64
}

// A trainer trains a network by back-propagation with Adam (Kingma and Ba, 2015): a step is the mean of the last
// gradients divided by the root of the mean of their squares, so that one learning rate suits all weights.
type trainer struct {
	net            *network
	constrain      func()
	decay          float64
	gradient       []float64
	mean, square   []float64
	hidden         []float64
	early1, early2 float64 // weight of the initial zeros in the means
}

const (
	batch   = 8 // examples per step
	beta1   = 0.9
	beta2   = 0.999
	epsilon = 1e-8
)

func newTrainer(n *network, decay float64) *trainer {
	k := len(n.weights)
	return &trainer{
		net: n, constrain: n.constrain, decay: decay,
		gradient: make([]float64, k), mean: make([]float64, k), square: make([]float64, k),
		hidden: make([]float64, n.units), early1: 1, early2: 1,
	}
}

// run trains for the given number of epochs, or until the mean of E is below the threshold. It returns the number of
// epochs and the last mean. The learning rate falls to a hundredth along half a cosine.
func (t *trainer) run(
	examples []example, epochs int, rate, threshold float64, rng *rand.Rand,
) (done int, loss float64) {
	for done < epochs {
		turn := math.Cos(math.Pi * float64(done) / float64(epochs))
		loss = t.epoch(examples, rate*(0.01+0.99*(1+turn)/2), rng)
		if done++; loss < threshold {
			break
		}
	}
	return done, loss
}

// epoch trains once on all examples in random order, and returns the mean of E.
func (t *trainer) epoch(examples []example, rate float64, rng *rand.Rand) float64 {
	rng.Shuffle(len(examples), func(i, j int) { examples[i], examples[j] = examples[j], examples[i] })
	var loss float64
	for rest := examples; len(rest) > 0; {
		part := rest[:min(batch, len(rest))]
		rest = rest[len(part):]
		clear(t.gradient)
		for i := range part {
			loss += t.net.backPropagate(&part[i], t.gradient, t.hidden)
		}
		t.step(1/float64(len(part)), rate)
	}
	return loss / float64(len(examples))
}

// step moves the weights against the gradient, which is multiplied by share.
func (t *trainer) step(share, rate float64) {
	t.early1, t.early2 = t.early1*beta1, t.early2*beta2
	for i, g := range t.gradient {
		g *= share
		t.mean[i] = beta1*t.mean[i] + (1-beta1)*g
		t.square[i] = beta2*t.square[i] + (1-beta2)*g*g
		step := t.mean[i] / (1 - t.early1) / (math.Sqrt(t.square[i]/(1-t.early2)) + epsilon)
		t.net.weights[i] -= rate * (step + t.decay*t.net.weights[i])
	}
	t.constrain()
}
