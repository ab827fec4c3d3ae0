package experiments

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/balance/split"
)

// smallBalance returns the paper's experiments with fewer runs, models and clusters.
func smallBalance() Balance {
	b := BalanceOfPaper()
	b.Runs, b.Models, b.Curve, b.ColdRuns, b.Clusters = 4, 3, []int{0, 10, 100, 500}, []int{1, 2, 10}, []Clusters{{5, 20}}
	b.Crawl.Hosts, b.Crawl.SlowsAt = 500, time.Minute
	return b
}

func runBalance(t *testing.T, b *Balance) BalanceResult {
	t.Helper()
	r, err := b.Run(t.Context(), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPieceOfOnePlace: if pages are fetched one after another, each takes the sum of its stages, and each resource is
// in use for its stage.
func TestPieceOfOnePlace(t *testing.T) {
	p, m, n := PaperProgram(), model.Machine{Cores: 2, GHz: 2, MemoryGB: 0.5, NetworkMbps: 4, DiskMbps: 3}, 50
	size, latency := 0., 0.
	for _, page := range pagesOf(7, n) {
		size, latency = size+page.size, latency+page.latency
	}
	network, work, disk := size*p.Down/4, size*p.Work*(1+p.Migration)/2, size*p.Written/3
	want := p.Start/2 + latency*p.Latency + network + work + disk
	got := p.Fetch(m, n, 7)
	for what, pair := range map[string][2]float64{
		"seconds": {got.Seconds, want}, "network": {got.Network, network / want}, "processor": {got.Processor, work / want},
		"disk": {got.Disk, disk / want},
	} {
		if math.Abs(pair[0]/pair[1]-1) > 1e-6 {
			t.Errorf("%s: %v, %v expected", what, pair[0], pair[1])
		}
	}
}

// TestPieceIsNoFasterThanItsMachine: no resource is in use for longer than the piece takes, and the time of long pieces
// is near the bound.
func TestPieceIsNoFasterThanItsMachine(t *testing.T) {
	b := BalanceOfPaper()
	for i := range b.Programs {
		p := &b.Programs[i]
		for k := range uint64(50) {
			m := randomMachine(b.chance(drawMachines, k))
			piece := p.Fetch(m, 500, k)
			if most := max(piece.Network, piece.Processor, piece.Disk); most > 1+1e-6 {
				t.Errorf("%s, seed %d, %+v: %+v", p.Name, k, m, piece)
			}
			if ratio := piece.Seconds / p.Bound(m, 500); ratio < 0.85 || ratio > 1.5 {
				t.Errorf("%s, seed %d, %+v: %.1f s, %.2f times the bound", p.Name, k, m, piece.Seconds, ratio)
			}
		}
	}
}

// TestPaperProgram: the paper's split and the even one take about as long as in the paper.
func TestPaperProgram(t *testing.T) {
	b := BalanceOfPaper()
	p := &b.Programs[0]
	for _, c := range []struct {
		counts []int
		want   float64
	}{{b.Assigned, 134}, {split.Even(5, 500), 233}} {
		if run, _ := wholeRun(b.fetchAll(p, c.counts)); math.Abs(run/c.want-1) > 0.03 {
			t.Errorf("%v takes %.1f s, %v expected", c.counts, run, c.want)
		}
	}
}

// TestBalance checks one result in several ways.
func TestBalance(t *testing.T) {
	b := smallBalance()
	r := runBalance(t, &b)
	t.Run("splits", func(t *testing.T) { lookAtSplits(t, &b, &r) })
	t.Run("statements", func(t *testing.T) { lookAtStatements(t, &b, &r) })
	t.Run("samples", func(t *testing.T) { lookAtSamples(t, &r) })
	t.Run("crawls", func(t *testing.T) { lookAtCrawls(t, &r) })
}

// lookAtSplits: a split by predictions takes less time than the even split, and none takes less than the split by true
// times.
func lookAtSplits(t *testing.T, b *Balance, r *BalanceResult) {
	for _, p := range b.Programs {
		of := map[string]*SplitRow{}
		for i := range r.Splits {
			if s := &r.Splits[i]; s.Program == p.Name {
				of[s.Way] = s
				if sum := sumOf(s.Counts); sum != b.URLs {
					t.Errorf("%s, %s: %v are %d URLs", p.Name, s.Way, s.Counts, sum)
				}
			}
		}
		best := of[wayBest].Run
		for _, way := range []string{wayExact, waySwarm} {
			if ratio := of[way].Run / best; ratio > 1.1 || of[way].Ratio > 0.65 {
				t.Errorf("%s, %s: %.3f of the best, %.3f of the even split", p.Name, way, ratio, of[way].Ratio)
			}
		}
		for way, s := range of {
			if s.Run < 0.95*best { // tolerance for the pages of the runs
				t.Errorf("%s, %s: %.1f s, the best %.1f s", p.Name, way, s.Run, best)
			}
		}
	}
}

func sumOf(counts []int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// lookAtStatements: more cores make the paper's program slower and kumo's faster.
func lookAtStatements(t *testing.T, b *Balance, r *BalanceResult) {
	seen := map[string]bool{}
	for _, s := range b.Judge(r) {
		if s.Statement == "with more cores the run is longer" || s.Statement == "with more network the run is shorter" {
			seen[strings.TrimPrefix(s.Of, "experiment 1, program ")+": "+s.Statement] = s.Seen
		}
		if !s.Seen && s.Why == "" {
			t.Errorf("%+v: it is not said why", s)
		}
	}
	want := map[string]bool{
		"paper: with more cores the run is longer": true, "kumo: with more cores the run is longer": false,
		"paper: with more network the run is shorter": true, "kumo: with more network the run is shorter": true,
	}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("%v, %v expected", seen, want)
	}
}

// lookAtSamples: errors fall and runs become shorter with samples, and from run to run.
func lookAtSamples(t *testing.T, r *BalanceResult) {
	for i := 1; i < len(r.Curve); i++ {
		a, c := r.Curve[i-1], r.Curve[i]
		if a.Program == c.Program && a.Way == c.Way && a.Way == wayExact && (c.Longer > a.Longer+0.02 || c.Samples >= 100 && c.Error >= a.Error) {
			t.Errorf("%s: an error of %.3f with %d samples, %.3f with %d; runs %.3f and %.3f times the shortest", a.Program,
				a.Error, a.Samples, c.Error, c.Samples, a.Longer, c.Longer)
		}
	}
	for i := 1; i < len(r.Whole); i++ {
		if a, c := r.Whole[i-1], r.Whole[i]; a.Program == c.Program && c.Longer > a.Longer {
			t.Errorf("%s: run %d takes %.3f times the shortest, run %d %.3f times", a.Program, a.Number, a.Longer, c.Number,
				c.Longer)
		}
	}
}

// TestVarianceExample: the split with the least variance takes 80 s, the shortest 50 s.
func TestVarianceExample(t *testing.T) {
	b := smallBalance()
	rows := b.variance()
	least, exact := rows[0], rows[len(rows)-1]
	if counts := slices.Sorted(slices.Values(least.Counts)); least.Seconds != 80 ||
		!slices.Equal(counts, []int{1, 49, 50}) {
		t.Errorf("least variance: %+v", least)
	}
	if exact.Seconds != 50 || !slices.Equal(exact.Counts, []int{50, 50, 0}) {
		t.Errorf("exact: %+v", exact)
	}
}

// lookAtCrawls: with balance, a crawl of unequal nodes takes less time than with shard, without violations.
func lookAtCrawls(t *testing.T, r *BalanceResult) {
	for _, c := range r.Crawls {
		if len(c.Violations) > 0 || c.Time < c.Shortest || c.Pages() != c.Requests {
			t.Errorf("%+v", c)
		}
		if most := map[string]float64{"shard": 1, "balance": 0.9, "balance/paper": 2}[c.Strategy]; c.Ratio > most {
			t.Errorf("%s, slows: %v: %.3f times shard's", c.Strategy, c.Slows, c.Ratio)
		}
	}
	if n := len(r.Crawls); n != 6 {
		t.Errorf("%d crawls", n)
	}
}

// TestBalanceAgain: equal seeds give equal tables and pictures, different seeds do not.
func TestBalanceAgain(t *testing.T) {
	b := smallBalance()
	b.Runs, b.Models, b.Curve, b.ColdRuns, b.Clusters = 2, 1, []int{30}, []int{1, 2}, []Clusters{{3, 3}}
	b.Crawl.Hosts = 50
	write := func() []byte {
		r := runBalance(t, &b)
		var w bytes.Buffer
		for _, table := range b.Tables(&r) {
			if err := table.Write(&w); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range b.Pictures(&r) {
			if err := p.SVG(&w, p.Title); err != nil {
				t.Fatal(err)
			}
		}
		return w.Bytes()
	}
	first := write()
	if !bytes.Equal(first, write()) {
		t.Error("the same seed makes something else")
	}
	b.Seed++
	if bytes.Equal(first, write()) {
		t.Error("another seed makes the same")
	}
}

func TestBalanceInterrupted(t *testing.T) {
	b := smallBalance()
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	_, err := b.Run(ctx, func(int, int) {
		done++
		cancel()
	})
	if !errors.Is(err, context.Canceled) || done != 1 {
		t.Errorf("%v after %d parts", err, done)
	}
}
