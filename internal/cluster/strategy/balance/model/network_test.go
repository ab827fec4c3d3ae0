package model

import (
	"math"
	"math/rand/v2"
	"testing"
)

func anyExample(rng *rand.Rand) (e example) {
	for i := range e.x {
		e.x[i] = rng.Float64()
	}
	e.y = rng.Float64()
	return e
}

// TestGradient compares back-propagation with differences of E.
func TestGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	n := newNetwork(5, false, rng)
	for range 20 {
		e := anyExample(rng)
		gradient, hidden := make([]float64, len(n.weights)), make([]float64, 5)
		loss, want := n.backPropagate(&e, gradient, hidden), square(e.y-n.output(&e.x))/2
		if math.Abs(loss-want) > 1e-15 {
			t.Fatalf("E is %v, not %v", loss, want)
		}
		const h = 1e-6
		for i, g := range gradient {
			was := n.weights[i]
			n.weights[i] = was + h
			above := square(e.y-n.output(&e.x)) / 2
			n.weights[i] = was - h
			below := square(e.y-n.output(&e.x)) / 2
			n.weights[i] = was
			if d := (above - below) / (2 * h); math.Abs(d-g) > 1e-8 {
				t.Errorf("weight %d: gradient %v, difference %v", i, g, d)
			}
		}
	}
}

// TestOutputRises: a network's output never decreases, even if it was trained on decreasing times.
func TestOutputRises(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		n := newNetwork(1+rng.IntN(20), false, rng)
		examples := make([]example, 40)
		for i := range examples {
			examples[i] = anyExample(rng)
			if rng.IntN(2) == 0 {
				examples[i].y = 1 - examples[i].x[urls]
			}
		}
		newTrainer(n, 0.01).run(examples, 50, 0.05, 0, rng)
		for range 50 {
			x := anyExample(rng).x
			before := math.Inf(-1)
			for i := range 101 {
				x[urls] = float64(i) / 100
				o := n.output(&x)
				if o < before-1e-12 {
					t.Fatalf("seed %d: at %v the output falls from %v to %v", seed, x, before, o)
				}
				before = o
			}
		}
	}
}

// TestRescale: a network's output does not change when new samples widen the spans.
func TestRescale(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		some := func(wide float64) Sample {
			f := func() float64 { return math.Exp(wide * rng.NormFloat64()) }
			machine := Machine{f(), 2.4, f(), f(), f()}
			return Sample{Node: "a", Machine: machine, URLs: 1 + rng.IntN(int(100*wide)), Seconds: f()}
		}
		from := newScaling(false)
		inside := make([]Sample, 20)
		for i := range inside {
			inside[i] = some(1)
			from.add(inside[i])
		}
		to := from
		for range 20 {
			s := some(3)
			s.GHz = 2 + rng.Float64() // below and above the value that all had before
			to.add(s)
		}
		n := newNetwork(13, false, rng)
		before := make([]float64, len(inside))
		for i, s := range inside {
			e := from.example(s)
			before[i] = from.unscale(n.output(&e.x))
		}
		n.rescale(&from, &to)
		for i, s := range inside {
			e := to.example(s)
			if now := to.unscale(n.output(&e.x)); math.Abs(math.Log(now/before[i])) > 1e-9 {
				t.Fatalf("seed %d: %v became %v", seed, before[i], now)
			}
		}
	}
}

func (n *network) output(x *[inputs]float64) float64 {
	o := *n.outBias()
	for u := range n.units {
		w := n.unit(u)
		o += w[out] * math.Tanh(sum(w, x))
	}
	return o
}
