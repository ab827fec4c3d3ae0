package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// A form is a way to make a network's predictions increase with the number of URLs.
type form struct {
	name   string
	linear bool // plain figures and times, as in the paper, instead of logarithms
	rise   int
}

const (
	free   = iota // times may decrease
	clip          // weights that must not be negative are clamped to 0, as in the package
	powers        // these weights are powers of e
	pool          // free, with adjacent decreasing predictions pooled
)

// TestForms compares the package's form with others.
func TestForms(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds of training")
	}
	t.Run("a quick start", func(t *testing.T) { testForms(t, quick) })
	t.Run("a slow start", func(t *testing.T) { testForms(t, slow) })
}

func testForms(t *testing.T, w world) {
	const seeds = uint64(2)
	forms := []form{
		{"paper", true, free}, {"paper, rising", true, clip}, {"logs", false, free},
		{"logs, rising", false, clip}, {"logs, powers", false, powers}, {"logs, pooled", false, pool},
	}
	known, unseen := map[string]float64{}, map[string]float64{}
	t.Log("errors after 30, 100, 300 samples: of the five nodes, of machines never seen; pairs n, 1.1 n that fall")
	for _, f := range forms {
		line := fmt.Sprintf("%-14s", f.name)
		for _, count := range []int{30, 100, 300} {
			var here, elsewhere, falls float64
			for seed := range seeds {
				e, some := f.learn(w, seed, count, fiveNodes, oneOfFive)
				here, falls = here+e/float64(seeds), falls+some/float64(2*seeds)
				rng := rand.New(rand.NewPCG(seed, 5))
				var machines []Machine
				for range 30 {
					machines = append(machines, anyMachine(rng))
				}
				e, some = f.learn(w, seed, count, machines, anyMachine)
				elsewhere, falls = elsewhere+e/float64(seeds), falls+some/float64(2*seeds)
			}
			line += fmt.Sprintf("   %.3f %.3f %4.1f %%", here, elsewhere, 100*falls)
			known[f.name] += here / 3
			unseen[f.name] += elsewhere / 3
		}
		t.Log(line)
	}
	if k, u := known["logs, rising"], unseen["logs, rising"]; k > known["logs"]+0.03 || u > unseen["logs"]+0.03 {
		t.Error("rising costs more than an error of 0.03")
	}
	if u := unseen["logs, rising"]; u > unseen["paper"]/2 {
		t.Error("logarithms are of little use for machines never seen")
	}
}

func oneOfFive(rng *rand.Rand) Machine { return fiveNodes[rng.IntN(5)] }

// learn trains a network on samples of several machines. It returns its error (a root mean square of logarithms,
// against the truth without noise), and how often its times decrease.
func (f form) learn(
	w world, seed uint64, count int, machines []Machine, probe func(*rand.Rand) Machine,
) (e, falls float64) {
	rng := rand.New(rand.NewPCG(seed, 6))
	scaling := newScaling(false)
	samples := make([]Sample, count)
	for i := range samples {
		samples[i] = w.measure("a", machines[i%len(machines)], rng)
		scaling.add(samples[i])
	}
	examples := make([]example, count)
	for i, s := range samples {
		examples[i] = f.example(&scaling, s)
	}
	n := newNetwork(13, false, rng)
	switch tr := newTrainer(n, 0.003); f.rise {
	case powers:
		trainPowers(n, examples, rng)
	case clip:
		tr.run(examples, 200, 0.02, 0, rng)
	default:
		tr.constrain = func() {}
		tr.run(examples, 200, 0.02, 0, rng)
	}
	const probes = 500
	for range probes {
		s := Sample{Machine: probe(rng), URLs: 1 + rng.IntN(180)}
		now := f.seconds(n, &scaling, s)
		e += square(math.Log(now/w.seconds(s.Machine, s.URLs))) / probes
		if s.URLs += 1 + s.URLs/10; f.seconds(n, &scaling, s) < now {
			falls += 1. / probes
		}
	}
	return math.Sqrt(e), falls
}

func (f form) example(c *scaling, s Sample) example {
	if s.Seconds == 0 {
		s.Seconds = 1
	}
	e := c.example(s)
	if !f.linear {
		return e
	}
	scale := func(of span, v float64) float64 {
		least, most := math.Exp(of.Min), math.Exp(of.Max)
		return (min(max(v, least), most) - least) / max(most-least, 1e-9)
	}
	for i, v := range s.facts() {
		e.x[i] = scale(c.Inputs[i], v)
	}
	e.x[urls] = scale(c.Inputs[urls], float64(s.URLs))
	e.y = (s.Seconds - math.Exp(c.Seconds.Min)) / (math.Exp(c.Seconds.Max) - math.Exp(c.Seconds.Min))
	return e
}

// seconds returns the prediction, at least a tenth of a second.
func (f form) seconds(n *network, c *scaling, s Sample) float64 {
	e := f.example(c, s)
	switch o := n.output(&e.x); {
	case f.rise == pool:
		return c.unscale(pooled(n, e))
	case f.linear:
		least, most := math.Exp(c.Seconds.Min), math.Exp(c.Seconds.Max)
		return max(least+o*(most-least), 0.1)
	default:
		return c.unscale(o)
	}
}

// trainPowers trains with powers of e instead of the weights that must not be negative.
func trainPowers(n *network, examples []example, rng *rand.Rand) {
	var rising []int
	for u := range n.units {
		rising = append(rising, u*stride+urls, u*stride+out)
	}
	logs := newNetwork(n.units, false, rng)
	copy(logs.weights, n.weights)
	for _, i := range rising {
		logs.weights[i] = math.Log(max(n.weights[i], 0.1))
	}
	tr := newTrainer(logs, 0)
	tr.constrain = func() {}
	for epoch := range 200 {
		rate := 0.02 * (0.01 + 0.99*(1+math.Cos(math.Pi*float64(epoch)/200))/2)
		rng.Shuffle(len(examples), func(i, j int) { examples[i], examples[j] = examples[j], examples[i] })
		for rest := examples; len(rest) > 0; {
			part := rest[:min(batch, len(rest))]
			rest = rest[len(part):]
			copy(n.weights, logs.weights)
			for _, i := range rising {
				n.weights[i] = math.Exp(logs.weights[i])
			}
			clear(tr.gradient)
			for i := range part {
				n.backPropagate(&part[i], tr.gradient, tr.hidden)
			}
			for _, i := range rising {
				tr.gradient[i] *= n.weights[i] // dw/dlog w = w
			}
			tr.step(1/float64(len(part)), rate)
		}
	}
}

// pooled returns the output at the example's number of URLs after pooling adjacent violators on a grid.
func pooled(n *network, e example) float64 {
	const grid = 40
	type block struct{ mean, points float64 }
	var blocks []block
	at := e.x[urls] * grid
	for i := range grid + 1 {
		e.x[urls] = float64(i) / grid
		blocks = append(blocks, block{n.output(&e.x), 1})
		for k := len(blocks) - 1; k > 0 && blocks[k-1].mean > blocks[k].mean; k-- {
			a, b := blocks[k-1], blocks[k]
			points := a.points + b.points
			blocks = append(blocks[:k-1], block{(a.mean*a.points + b.mean*b.points) / points, points})
		}
	}
	var flat []float64
	for _, b := range blocks {
		for range int(b.points) {
			flat = append(flat, b.mean)
		}
	}
	i := min(int(at), grid-1)
	return flat[i] + (at-float64(i))*(flat[i+1]-flat[i])
}
