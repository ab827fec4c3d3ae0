package model

import "math/rand/v2"

// Defaults of a Config with Paper. The paper gives no values.
const (
	PaperRate      = 0.05
	PaperThreshold = 5e-4
)

// Plain back-propagation takes more epochs than Adam. For each epoch requested there are at most descentEpochs, with
// maxDescents steps of about a microsecond.
const (
	descentEpochs = 20
	maxDescents   = 1000
)

// descend trains a network by plain back-propagation, as in the paper: after each example all weights move against its
// gradient. An epoch has all examples in random order. Training ends when the mean of E is below the threshold. It
// returns the number of epochs and the last mean of E.
func (n *network) descend(
	examples []example, epochs int, rate, threshold float64, rng *rand.Rand,
) (done int, loss float64) {
	gradient, hidden := make([]float64, len(n.weights)), make([]float64, n.units)
	most := min(epochs*descentEpochs, max(1, epochs*maxDescents/len(examples)))
	for done < most {
		rng.Shuffle(len(examples), func(i, j int) { examples[i], examples[j] = examples[j], examples[i] })
		loss = 0
		for i := range examples {
			clear(gradient)
			loss += n.backPropagate(&examples[i], gradient, hidden)
			for k, g := range gradient {
				n.weights[k] -= rate * g
			}
		}
		loss /= float64(len(examples))
		if done++; loss < threshold {
			break
		}
	}
	return done, loss
}

// paperTime is Time with the paper's network alone.
func (m *Model) paperTime(machine Machine) (func(n int) float64, Basis) {
	if m.net == nil {
		return atPace(1), Nothing
	}
	output := m.output(machine)
	return func(n int) float64 {
		if n <= 0 {
			return 0
		}
		return output(float64(n))
	}, Network
}
