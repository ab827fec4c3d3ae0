package experiments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/breadth"
)

func rankExperiment(t *testing.T, r Rank, g *Graph) *RankResult {
	t.Helper()
	res, err := r.Run(t.Context(), g, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestRank: every crawl fetches all pages once; orders that know more find what is important sooner.
func TestRank(t *testing.T) {
	g := GeneratedGraph{Seed: 1, Pages: 30_000, BySize: BySize}.Graph()
	r := RankOfPaper()
	r.Top, r.Delay = 100, 20
	res := rankExperiment(t, r, g)
	if res.Reached < 29_000 || len(res.Runs) != 12 {
		t.Fatalf("%d pages reached, %d runs", res.Reached, len(res.Runs))
	}
	for i := range res.Runs {
		run := &res.Runs[i]
		for m, found := range run.Found {
			if len(found) != r.Top || !slices.IsSorted(found) || found[0] < 1 || found[len(found)-1] > res.Reached {
				t.Errorf("%s finds %d by %v, the last after %v", run.Order, len(found), Importance(m), found[len(found)-1])
			}
		}
		if run.Polite != (run.Idle > 0) {
			t.Errorf("%s, polite %v, is idle for %v of the time", run.Order, run.Polite, run.Idle)
		}
	}
	for _, polite := range []bool{false, true} {
		best, worst := res.run("pagerank", polite), res.run("random", polite)
		for _, order := range r.Orders[1:5] {
			run := res.run(order, polite)
			t.Logf("%s, polite %v: area %.4f, 90 %% after %d", order, polite, run.Area(ByPageRank, res.Reached),
				run.After(ByPageRank, 0.9))
			if a := run.Area(ByPageRank, res.Reached); a > best.Area(ByPageRank, res.Reached)+0.01 ||
				a < worst.Area(ByPageRank, res.Reached) {
				t.Errorf("%s has an area of %v, PageRank of %v, random of %v", order, a, best.Area(ByPageRank, res.Reached),
					worst.Area(ByPageRank, res.Reached))
			}
		}
	}
	if again := rankExperiment(t, r, g); !reflect.DeepEqual(res, again) {
		t.Error("the same seed, another result")
	}
}

// TestRankJudge: statements follow from when pages were found.
func TestRankJudge(t *testing.T) {
	r := Rank{Top: 10}
	at := func(first, step int) (all []int) {
		for i := range 10 {
			all = append(all, first+i*step)
		}
		return all
	}
	for _, c := range []struct {
		pagerank, breadth, random []int
		seen                      []bool
	}{
		{at(10, 1), at(10, 5), at(50, 5), []bool{true, true, true}},
		{at(1, 1), at(10, 5), at(50, 5), []bool{true, false, true}},
		{at(10, 5), at(10, 5), at(1, 1), []bool{false, true, false}},
	} {
		res := &RankResult{GraphSummary: GraphSummary{Reached: 100}}
		for order, found := range map[string][]int{"pagerank": c.pagerank, "breadth": c.breadth, "random": c.random} {
			res.Runs = append(res.Runs, RankRun{Order: order, Found: [importances][]int{found, found}})
		}
		all := r.Judge(res)
		for i, s := range all {
			if s.Seen != c.seen[i] || s.Seen != (s.Why == "") || strings.HasPrefix(s.Statement, "politely") {
				t.Errorf("%+v", s)
			}
		}
		if len(all) != 3 {
			t.Errorf("%d statements", len(all))
		}
	}
	run := RankRun{Found: [importances][]int{at(10, 10), nil}}
	if a := run.Area(ByPageRank, 100); a != 0.45 {
		t.Errorf("area %v", a)
	}
	if n := run.After(ByPageRank, 0.9); n != 90 {
		t.Errorf("90 %% after %d", n)
	}
	if x := run.At(ByPageRank, 29); x != 0.2 {
		t.Errorf("%v after 29", x)
	}
}

// TestPoliteQueue: a host is left alone for as long as it is to be, and the best that may be asked goes first.
func TestPoliteQueue(t *testing.T) {
	const seed, pages, hosts, delay = 3, 2000, 40, 15
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	g := &Graph{first: make([]int, pages+1), hosts: make([]uint32, pages), count: hosts}
	place := make([]rank.Place, pages)
	waits := map[rank.ID]bool{}
	q := newPoliteQueue(g, delay)
	for u := range g.hosts {
		g.hosts[u] = uint32(dice.IntN(hosts))
	}
	is := func(u rank.ID, p rank.Place) bool { return waits[u] && place[u] == p }
	last := map[uint32]int{}
	for n := 0; n < pages; n++ {
		for range dice.IntN(5) { // new pages, and some that move
			u := rank.ID(dice.IntN(pages))
			place[u] = rank.Place(dice.IntN(30))
			waits[u] = true
			q.push(u, place[u])
		}
		u, ok := q.pop(is)
		if !ok {
			if len(waits) > 0 {
				t.Fatalf("%d wait and none is given", len(waits))
			}
			continue
		}
		host := g.hosts[u]
		if before, was := last[host]; was && q.now-1-before < delay {
			t.Fatalf("host %d is asked after %d", host, q.now-1-before)
		}
		for other := range waits {
			h := g.hosts[other]
			if before, was := last[h]; (!was || q.now-1-before >= delay) && place[other] < place[u] {
				t.Fatalf("%d at place %d goes before %d at place %d", u, place[u], other, place[other])
			}
		}
		delete(waits, u)
		last[host] = q.now
	}
}

// TestReadGraph: the same graph in all forms.
func TestReadGraph(t *testing.T) {
	edges := "# a comment\n0 1\n0 2\n1 2\n2 0\n2 0\n4 4\n3 0\n"
	var zipped, zstdd bytes.Buffer
	z := gzip.NewWriter(&zipped)
	s, err := zstd.NewWriter(&zstdd)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []interface {
		Write([]byte) (int, error)
		Close() error
	}{z, s} {
		if _, err := w.Write([]byte(edges)); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"edges": edges, "gzip": zipped.String(), "zstd": zstdd.String(),
		"adjacency": "0 1 2\n1 2\n2 0 0\n4 4\n3 0\n",
		"numbered":  "5\n1 2\n2\n0 0\n0\n4\n",
		"URLs on two hosts": "http://a/0 https://b?1\nhttp://a/0 http://a/2\nhttps://b?1 http://a/2\n" +
			"http://a/2 http://a/0\nhttp://a/4 http://a/4\nhttp://a/3 http://a/0\n",
	} {
		g, err := ReadGraph(strings.NewReader(text), 2)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		hosts := 3
		if strings.Contains(name, "hosts") {
			hosts = 2
		}
		var got []string
		for u := range g.Pages() {
			got = append(got, fmt.Sprint(len(g.out(rank.ID(u)))))
		}
		slices.Sort(got)
		if g.Pages() != 5 || g.Links() != 6 || g.Hosts() != hosts || strings.Join(got, "") != "11112" {
			t.Errorf("%s: %d pages, %d links %v, %d hosts", name, g.Pages(), g.Links(), got, g.Hosts())
		}
	}
	g, err := ReadGraph(strings.NewReader("a b\nb c\n"), 10)
	if err != nil || g.Hosts() != 0 {
		t.Errorf("pages without hosts have %d: %v", g.Hosts(), err)
	}
	for _, bad := range []string{"", "# none\n", "x\n", "3\n1\n", "2\n1\n0\n1\n", "2\n7\n0\n", "0\n"} {
		if _, err := ReadGraph(strings.NewReader(bad), 0); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestRankNeedsPages(t *testing.T) {
	g, err := ReadGraph(strings.NewReader("a b\nb c\n"), 0)
	if err != nil {
		t.Fatal(err)
	}
	r := RankOfPaper()
	if _, err := r.Run(t.Context(), g, nil); !errors.Is(err, errFewPages) {
		t.Error(err)
	}
}

func TestRankInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := RankOfPaper()
	g := GeneratedGraph{Seed: 1, Pages: 20_000}.Graph()
	if _, err := r.Run(ctx, g, func(int, int) {}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestBreadthFirst: in one queue it fetches by depth.
func TestBreadthFirst(t *testing.T) {
	g := GeneratedGraph{Seed: 1, Pages: 5000}.Graph()
	c := newRankCrawl(g, breadth.New(), &oneQueue{}, 1)
	last := int32(0)
	err := c.run(t.Context(), []rank.ID{0}, func(u rank.ID) {
		if c.depth[u] < last {
			t.Fatalf("depth %d after %d", c.depth[u], last)
		}
		last = c.depth[u]
	})
	if err != nil || len(c.pages) != 5000 || last < 3 {
		t.Errorf("%d pages, %d deep: %v", len(c.pages), last, err)
	}
}

// TestReadNumbered: a graph of two lists is the same as one of URLs.
func TestReadNumbered(t *testing.T) {
	g, err := ReadNumbered(strings.NewReader("0\thttp://a.test/\n1\thttp://a.test/x\n2\thttp://b.test/\n"),
		strings.NewReader("0\t1\n0\t2\n2\t0\n"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := ReadGraph(strings.NewReader("http://a.test/ http://a.test/x http://b.test/\nhttp://b.test/ "+
		"http://a.test/\n"), 0)
	if err != nil || !reflect.DeepEqual(g, want) {
		t.Errorf("%+v, want %+v (%v)", g, want, err)
	}
	for _, bad := range []struct{ nodes, edges, want string }{
		{"1\thttp://a.test/\n", "", `line 1 of the nodes: its number is "1", and 0 was to come`},
		{"0 http://a.test/\n", "", "line 1 of the nodes: it has not two fields"},
		{"0\thttp://a.test/\n", "0\t1\n", `line 1 of the edges: "1" is no node from 0 to 0`},
		{"0\thttp://a.test/\n", "0\t0\n-1\t0\n", `line 2 of the edges: "-1" is no node`},
		{"0\thttp://a.test/\n", "", "the graph has no links"},
	} {
		if _, err := ReadNumbered(strings.NewReader(bad.nodes), strings.NewReader(bad.edges)); err == nil ||
			!strings.Contains(err.Error(), bad.want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func FuzzReadNumbered(f *testing.F) {
	f.Add("0\thttp://a.test/\n1\thttp://b.test/\n", "0\t1\n1\t0\n")
	f.Fuzz(func(t *testing.T, nodes, edges string) {
		g, err := ReadNumbered(strings.NewReader(nodes), strings.NewReader(edges))
		if err == nil && g.Pages() != strings.Count(strings.TrimSuffix(nodes, "\n"), "\n")+1 {
			t.Errorf("%d pages of %q", g.Pages(), nodes)
		}
	})
}
