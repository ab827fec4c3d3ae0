package pagerank_test

import (
	"bufio"
	"cmp"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/pagerank"
	"kumo/internal/state/rank/ranktest"
)

// TestAgainstOtherSolvers: on a graph that grew page by page, the ranks and their order are those of SciPy and
// networkx.
func TestAgainstOtherSolvers(t *testing.T) {
	needModule(t, "scipy")
	needModule(t, "networkx")
	for _, c := range []struct {
		nodes, links int
		jump         float64
	}{{10, 2, 0.15}, {1000, 8, 0.15}, {1000, 8, 0.5}, {100_000, 8, 0.15}} {
		t.Run(fmt.Sprintf("%d nodes, jump %v", c.nodes, c.jump), func(t *testing.T) {
			const seed = 1
			t.Log("seed", seed)
			pages := ranktest.Pages(seed, c.nodes, c.links)
			for i := range pages {
				if pages[i].ID == 0 { // most pages link to it; it links elsewhere, like a redirect
					pages[i].Links, pages[i].Out = []rank.ID{rank.ID(c.nodes)}, 1
				}
			}
			pages = append(pages, rank.Page{ID: rank.ID(c.nodes), Links: []rank.ID{rank.ID(c.nodes + 1)}, Out: 1})
			o := grown(t, pages, c.nodes+2, c.jump)
			formula, spread := solve(t, pages, c.nodes+2, c.jump)
			compare(t, o, c.nodes+2, c.jump, formula, spread)
		})
	}
}

// grown returns the order of a graph whose pages were added one by one, with passes in between, and then passes until
// nothing changes.
func grown(t *testing.T, pages []rank.Page, nodes int, jump float64) *pagerank.Order {
	o := pagerank.New(jump)
	o.Grow(nodes)
	for i := range pages {
		o.Fetched(&pages[i])
		if i == len(pages)/3 || i == len(pages)/2 {
			pass(t, o, pages[:i+1])
		}
	}
	for range 60 {
		pass(t, o, pages)
	}
	return o
}

func pass(t *testing.T, o *pagerank.Order, pages []rank.Page) {
	o.Begin()
	if err := o.Pass(t.Context(), ranktest.ScanOf(pages)); err != nil {
		t.Fatal(err)
	}
	o.End()
}

func solve(t *testing.T, pages []rank.Page, nodes int, jump float64) (formula, spread []float64) {
	dir := t.TempDir()
	var b []byte
	for i := range pages {
		for _, to := range pages[i].Links {
			b = fmt.Appendf(b, "%d %d\n", pages[i].ID, to)
		}
	}
	edges, values := filepath.Join(dir, "edges"), filepath.Join(dir, "values")
	if err := os.WriteFile(edges, b, 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("python3", "testdata/solve.py", strconv.Itoa(nodes), fmt.Sprint(jump), edges,
		values).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(values)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var x, y float64
		if _, err := fmt.Sscan(lines.Text(), &x, &y); err != nil {
			t.Fatal(err)
		}
		formula, spread = append(formula, x), append(spread, y)
	}
	if len(formula) != nodes {
		t.Fatalf("%d values", len(formula))
	}
	return formula, spread
}

// compare compares values to a millionth of each, and the order of those that differ by more.
func compare(t *testing.T, o *pagerank.Order, nodes int, jump float64, formula, spread []float64) {
	all := make([]rank.ID, nodes)
	ranks, sum := make([]float64, nodes), 0.0
	for u := range all {
		all[u] = rank.ID(u)
		ranks[u] = o.Importance(rank.ID(u), 0) * jump / float64(nodes)
		sum += ranks[u]
	}
	const within = 1e-6
	worst := 0.0
	for u, r := range ranks {
		off := math.Abs(r/formula[u] - 1)
		worst = max(worst, off, math.Abs(r/sum/spread[u]-1))
		if worst > within {
			t.Fatalf("URL %d: %v and %v of all; SciPy has %v, networkx %v", u, r, r/sum, formula[u], spread[u])
		}
	}
	slices.SortFunc(all, func(a, b rank.ID) int { return cmp.Compare(ranks[b], ranks[a]) })
	for _, solver := range [][]float64{formula, spread} {
		least := math.Inf(1)
		for place, u := range all {
			if solver[u] > least*(1+within) {
				t.Fatalf("place %d: URL %d has %v, one before it %v", place, u, solver[u], least)
			}
			least = min(least, solver[u])
		}
	}
	t.Logf("no rank is off by more than %.1e of itself", worst)
}

// needModule skips the test if the Python module is not installed, but not in CI.
func needModule(t *testing.T, module string) {
	t.Helper()
	err := exec.Command("python3", "-c", "import "+module).Run()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("python3 has no module %s: %v", module, err)
	default:
		t.Skipf("SKIPPED: the check by other solvers needs python3 with the module %s: %v", module, err)
	}
}
