package experiments

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kumo/internal/lab/testmain"
	"kumo/internal/state/rank"
)

func rankNodes(t *testing.T, r RankNodes, g *Graph) *RankNodesResult {
	t.Helper()
	res, err := r.Run(t.Context(), g, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestRankNodes: one node ranks nearly as one PageRank does, several nearly as well, and all the better for what they
// tell each other.
func TestRankNodes(t *testing.T) {
	testmain.Slow(t)
	g := GeneratedGraph{Seed: 1, Pages: 30_000, BySize: BySize}.Graph()
	r := DefaultRankNodes()
	r.Top, r.Nodes = 200, []int{1, 4}
	res := rankNodes(t, r, g)
	if len(res.Runs) != 3 || res.Runs[0].Silent || res.Runs[1].Silent || !res.Runs[2].Silent {
		t.Fatalf("%+v", res.Runs)
	}
	for i := range res.Runs {
		run := &res.Runs[i]
		for k, p := range run.Points {
			t.Logf("%s: %+v", run.name(), p)
			if want := int(r.At[k] * float64(res.Reached)); p.Fetched != want || p.Known < want || p.Overlap > r.Top {
				t.Errorf("%s at %v: %+v", run.name(), r.At[k], p)
			}
		}
		if last := run.Points[len(r.At)-1]; last.Known != res.Reached || last.Found != r.Top ||
			run.Nodes == 1 && last.RemoteLinks+last.Sent != 0 || run.Nodes > 1 && last.Sent-last.Resent >= last.RemoteLinks ||
			last.Resent > last.RemoteLinks/4 {
			t.Errorf("%s in the end: %+v", run.name(), last)
		}
	}
	for k := range r.At {
		alone, told, silent := res.Runs[0].Points[k], res.Runs[1].Points[k], res.Runs[2].Points[k]
		if alone.Tau < 0.9 || told.Tau > alone.Tau+0.01 || k > 0 && told.Tau < alone.Tau-0.05 || told.Tau < silent.Tau+0.03 ||
			alone.Overlap < r.Top*17/20 {
			t.Errorf("at %v: alone %+v, several %+v, silent %+v", r.At[k], alone, told, silent)
		}
	}
	if again := rankNodes(t, r, g); !reflect.DeepEqual(res, again) {
		t.Error("the same seed, another result")
	}
}

// TestLittleIsKeptBack: what links to another node's URL are worth, that node has but for a place, at any time when
// nothing is under way.
func TestLittleIsKeptBack(t *testing.T) {
	g := GeneratedGraph{Seed: 5, Pages: 3000, BySize: BySize}.Graph()
	c := newRankCluster(g, 1, 2, false, 1e9, 20) // no pass
	judged := 0
	err := c.run(t.Context(), []rank.ID{0, 1, 2}, func(context.Context) error {
		if len(c.nodes[0].outgoing)+len(c.nodes[1].outgoing) > 0 {
			return nil
		}
		for i, n := range c.nodes {
			for _, u := range n.reported {
				has, there := n.order.Worth(u), c.nodes[1-i].reports.Worth(u)
				if told := n.reports.Worth(u); has > (told+0.15)*1.13-0.15 || there != 0 {
					t.Fatalf("of %v for URL %d the other has %v", has, u, told)
				}
				judged++
			}
		}
		return nil
	})
	if err != nil || judged < 1000 {
		t.Errorf("%d judged: %v", judged, err)
	}
}

func TestRankNodesNeedHosts(t *testing.T) {
	g, err := ReadGraph(strings.NewReader("a b\nb c\n"), 0)
	if err != nil {
		t.Fatal(err)
	}
	r := DefaultRankNodes()
	if _, err := r.Run(t.Context(), g, nil); !errors.Is(err, errNoHosts) {
		t.Error(err)
	}
}

// TestKendall: the same as by comparing all pairs.
func TestKendall(t *testing.T) {
	const seed = 2
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	for n := range 60 {
		x, y := make([]float64, n+2), make([]float64, n+2)
		for i := range x {
			x[i], y[i] = float64(dice.IntN(n/2+2)), float64(dice.IntN(n/2+2))
		}
		x[0], x[1], y[0], y[1] = -1, -2, -1, -2 // not all the same
		if got, want := kendall(x, y), kendallOfPairs(x, y); math.Abs(got-want) > 1e-12 {
			t.Errorf("of %v and %v: %v, by pairs %v", x, y, got, want)
		}
	}
	x := []float64{1, 2, 3, 4}
	y := slices.Clone(x)
	if tau := kendall(x, y); tau != 1 {
		t.Errorf("of the same %v", tau)
	}
	slices.Reverse(y)
	if tau := kendall(x, y); tau != -1 {
		t.Errorf("of the reverse %v", tau)
	}
}

func kendallOfPairs(x, y []float64) float64 {
	sum, inX, inY := 0, 0, 0
	for i := range x {
		for k := range i {
			a, b := sign(x[i]-x[k]), sign(y[i]-y[k])
			sum, inX, inY = sum+a*b, inX+a*a, inY+b*b
		}
	}
	return float64(sum) / math.Sqrt(float64(inX)*float64(inY))
}

func sign(x float64) int {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}
