package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func add(t testing.TB, m *Model, s Sample) {
	t.Helper()
	if err := m.Add(s); err != nil {
		t.Fatal(err)
	}
}

// seconds returns the model's prediction and its basis.
func seconds(m *Model, node string, machine Machine, n int) (float64, Basis) {
	time, basis := m.Time(node, machine)
	return time(n), basis
}

func about(got, want, share float64) bool { return math.Abs(math.Log(got/want)) < share }

func TestWithFewSamples(t *testing.T) {
	m := New(Config{Seed: 1})
	fast, slow := fiveNodes[0], fiveNodes[3]
	if s, basis := seconds(m, "fast", fast, 7); s != 7 || basis != Nothing {
		t.Errorf("before all samples %v s, %v", s, basis)
	}
	add(t, m, Sample{Node: "fast", Machine: fast, URLs: 100, Seconds: 50})
	add(t, m, Sample{Node: "slow", Machine: slow, URLs: 100, Seconds: 200})
	if s, basis := seconds(m, "fast", fast, 10); s != 5 || basis != Pace {
		t.Errorf("at 2 pages a second 10 take %v s, %v", s, basis)
	}
	if s, basis := seconds(m, "new", slow, 10); s != 8 || basis != Mean {
		t.Errorf("at 1.25 pages a second, the mean of 2 and 0.5, 10 take %v s, %v", s, basis)
	}
	if r := m.Train(200); r.Trained != 0 {
		t.Errorf("trained with %d samples", r.Trained)
	}
	rng := rand.New(rand.NewPCG(1, 0))
	for i := 0; ; i++ {
		if r := m.Train(20); r.Trained > 0 {
			if r.Trained != 20 {
				t.Errorf("the first training had %d samples", r.Trained)
			}
			break
		}
		if i == 100 {
			t.Fatal("100 samples are too few")
		}
		add(t, m, quick.measure("fast", fast, rng))
	}
	if _, basis := seconds(m, "new", slow, 10); basis != Network {
		t.Errorf("a network answers for a new node by %v", basis)
	}
}

// TestRising: times increase with the number of URLs below, within and beyond the range of the samples, for known nodes
// and others. Beyond it the pace stays the same.
func TestRising(t *testing.T) {
	for seed := range uint64(5) {
		m, rng := quick.learn(t, 100, seed), rand.New(rand.NewPCG(seed, 2))
		for i := range 20 {
			node, machine := fmt.Sprint("n", i), anyMachine(rng)
			time, basis := m.Time(node, machine)
			if basis != Network {
				t.Fatalf("seed %d: basis %v", seed, basis)
			}
			if time(0) != 0 || time(-1) != 0 {
				t.Fatalf("seed %d: nothing takes %v s", seed, time(0))
			}
			for n := 1; n < 1000; n++ {
				if time(n) < time(n-1)*(1-1e-12) {
					t.Fatalf("seed %d, %+v: %d pages take %v s, one less %v s", seed, machine, n, time(n), time(n-1))
				}
			}
			if twice := time(2000); !about(twice, 2*time(1000), 1e-9) {
				t.Errorf("seed %d: 1,000 pages take %v s, 2,000 take %v s", seed, time(1000), twice)
			}
		}
	}
}

// TestFewerThanEver: below the least number of URLs in the samples, the time per page stays the same.
func TestFewerThanEver(t *testing.T) {
	m, rng := New(Config{Seed: 1}), rand.New(rand.NewPCG(1, 4))
	for i := range 50 {
		s := quick.measure(fmt.Sprint("n", i%5), fiveNodes[i%5], rng)
		s.URLs += 100
		if i == 0 {
			s.URLs = 100
		}
		add(t, m, s)
	}
	m.Train(20)
	if time, basis := m.Time("n1", fiveNodes[1]); basis != Network || !about(time(10), time(100)/10, 1e-9) {
		t.Errorf("by %v 10 pages take %v s, 100 take %v s", basis, time(10), time(100))
	}
}

// TestOddNode: a machine that takes twice as long as similar ones is predicted from its own samples, the better the
// more it has; and a machine that changes is predicted correctly again.
func TestOddNode(t *testing.T) {
	m, rng := quick.learn(t, 200, 3), rand.New(rand.NewPCG(3, 3))
	odd := fiveNodes[0]
	ratio := func() float64 {
		s, _ := seconds(m, "odd", odd, 100)
		return s / quick.seconds(odd, 100)
	}
	slower := func(times float64, samples int) {
		for range samples {
			s := quick.measure("odd", odd, rng)
			s.Seconds *= times
			add(t, m, s)
		}
	}
	if r := ratio(); !about(r, 1, 0.15) {
		t.Errorf("before its first sample it takes %.2f times as long", r)
	}
	slower(2, 1)
	if r := ratio(); r < 1.1 || r > 1.6 {
		t.Errorf("after one sample it takes %.2f times as long, not something between", r)
	}
	slower(2, 20)
	if r := ratio(); !about(r, 2, 0.25) {
		t.Errorf("after 21 samples it takes %.2f times as long, not 2", r)
	}
	slower(0.5, 40)
	if r := ratio(); !about(r, 0.5, 0.25) {
		t.Errorf("40 samples after it became fast it takes %.2f times as long, not 0.5", r)
	}
	if s, _ := seconds(m, "n0", odd, 100); !about(s, quick.seconds(odd, 100), 0.15) {
		t.Errorf("a node like it takes %.2f times as long", s/quick.seconds(odd, 100))
	}
}

// TestGoesOnLearning: a network trained a little after every few samples becomes as good as one trained once with all
// of them, and stays correct for slow machines when faster ones join.
func TestGoesOnLearning(t *testing.T) {
	for seed := range uint64(3) {
		m, rng := New(Config{Seed: seed}), rand.New(rand.NewPCG(seed, 1))
		for i := range 300 {
			node := i % 5
			if node == 0 && i < 150 {
				node = 3 // the fastest joins late
			}
			add(t, m, quick.measure(fmt.Sprint("n", node), fiveNodes[node], rng))
			if i%10 == 9 {
				m.Train(20)
			}
		}
		if e, once := quick.errorOf(m), quick.errorOf(quick.learn(t, 300, seed)); e > 0.1 || once > 0.1 {
			t.Errorf("seed %d: an error of %.3f with 30 trainings, %.3f with one", seed, e, once)
		}
	}
}

// TestWiderRanges: an extreme machine and an extreme assignment do not change the predictions for others.
func TestWiderRanges(t *testing.T) {
	m := quick.learn(t, 100, 1)
	before, _ := m.Time("n1", fiveNodes[1])
	giant := Machine{Cores: 64, GHz: 5, MemoryGB: 512, NetworkMbps: 10_000, DiskMbps: 5000}
	add(t, m, Sample{Node: "giant", Machine: giant, URLs: 100_000, Seconds: 1000})
	m.Train(0)
	after, _ := m.Time("n1", fiveNodes[1])
	for _, n := range []int{10, 50, 100} {
		if !about(after(n), before(n), 1e-9) {
			t.Errorf("%d pages took %v s, now %v s", n, before(n), after(n))
		}
	}
}

// TestReport: the error on the samples held back is that of the noise alone.
func TestReport(t *testing.T) {
	m := quick.learn(t, 1000, 4)
	r := m.Report()
	if r.Trained+r.HeldBack != 1000 || r.HeldBack < 150 || r.HeldBack > 250 {
		t.Errorf("of 1,000 samples %d to learn from, %d held back", r.Trained, r.HeldBack)
	}
	if r.Epochs != 200 || r.Loss <= 0 {
		t.Errorf("%d epochs, E %v", r.Epochs, r.Loss)
	}
	if r.Error < 0.8*noise || r.Error > 1.5*noise || r.ByPace < 1.5*r.Error {
		t.Errorf("noise of %v, errors %.3f by the network and %.3f by pace", noise, r.Error, r.ByPace)
	}
}

// TestThreshold: training ends when the error is below the threshold.
func TestThreshold(t *testing.T) {
	m, rng := New(Config{Seed: 1, Threshold: 0.01}), rand.New(rand.NewPCG(1, 1))
	for i := range 100 {
		add(t, m, quick.measure(fmt.Sprint("n", i%5), fiveNodes[i%5], rng))
	}
	if r := m.Train(200); r.Epochs < 2 || r.Epochs > 100 || r.Loss >= 0.01 {
		t.Errorf("%d epochs, to an E of %v", r.Epochs, r.Loss)
	}
}

// TestAPaceThatIsBetter: if the network is worse than the nodes' own pages per second, known nodes are predicted by
// these.
func TestAPaceThatIsBetter(t *testing.T) {
	m, rng := New(Config{Seed: 5, Hidden: 1}), rand.New(rand.NewPCG(5, 0))
	for i := range 200 { // equal machines with different paces: their figures predict nothing
		machine := fiveNodes[rng.IntN(5)]
		n := 1 + rng.IntN(200)
		add(t, m, Sample{Node: fmt.Sprint("n", i%5), Machine: machine, URLs: n, Seconds: float64(n * (1 + i%5))})
	}
	m.Train(1)
	if r := m.Report(); r.Error < r.ByPace {
		t.Fatalf("errors %v by the network, %v by pace", r.Error, r.ByPace)
	}
	if s, basis := seconds(m, "n3", fiveNodes[0], 10); basis != Pace || !about(s, 40, 1e-9) {
		t.Errorf("%v s by %v", s, basis)
	}
	if _, basis := seconds(m, "new", fiveNodes[0], 10); basis != Network {
		t.Errorf("a new node by %v", basis)
	}
}

// TestUnknownFacts: a machine with unknown figures is neither the best nor the worst.
func TestUnknownFacts(t *testing.T) {
	m, rng := New(Config{Seed: 6}), rand.New(rand.NewPCG(6, 0))
	for i := range 300 {
		add(t, m, quick.measure(fmt.Sprint("n", i), anyMachine(rng), rng))
	}
	m.Train(200)
	of := func(network float64) float64 {
		s, _ := seconds(m, "new", Machine{Cores: 4, GHz: 3, MemoryGB: 4, NetworkMbps: network, DiskMbps: 20}, 100)
		return s
	}
	if worst, unknown, best := of(2), of(0), of(40); worst <= unknown || unknown < best {
		t.Errorf("at 2 Mb/s %v s, unknown %v s, at 40 Mb/s %v s", worst, unknown, best)
	}
}

func TestBadSamples(t *testing.T) {
	good := Sample{Node: "a", Machine: fiveNodes[0], URLs: 1, Seconds: 1}
	for name, spoil := range map[string]func(*Sample){
		"no node":       func(s *Sample) { s.Node = "" },
		"a newline":     func(s *Sample) { s.Node = "a\nb" },
		"no URLs":       func(s *Sample) { s.URLs = 0 },
		"no time":       func(s *Sample) { s.Seconds = 0 },
		"NaN":           func(s *Sample) { s.Seconds = math.NaN() },
		"negative disk": func(s *Sample) { s.DiskMbps = -1 },
		"infinite GHz":  func(s *Sample) { s.GHz = math.Inf(1) },
	} {
		s, m := good, New(Config{})
		spoil(&s)
		if err := m.Add(s); err == nil || len(m.Samples()) > 0 {
			t.Errorf("%s: error %v, %d samples", name, err, len(m.Samples()))
		}
	}
}

// BenchmarkTrain measures an epoch, and a training after a few new samples.
func BenchmarkTrain(b *testing.B) {
	for _, epochs := range []int{1, 20} {
		b.Run(fmt.Sprint(epochs), func(b *testing.B) {
			m, rng := New(Config{Seed: 1}), rand.New(rand.NewPCG(1, 1))
			for i := range 1250 {
				add(b, m, quick.measure(fmt.Sprint("n", i%5), fiveNodes[i%5], rng))
			}
			for b.Loop() {
				m.Train(epochs)
			}
			b.ReportMetric(float64(m.Report().Trained), "samples")
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	m, rng := quick.learn(b, 1250, 1), rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		add(b, m, quick.measure("n1", fiveNodes[1], rng))
	}
}

func BenchmarkTime(b *testing.B) {
	time, _ := quick.learn(b, 100, 1).Time("n1", fiveNodes[1])
	for b.Loop() {
		time(100)
	}
}
