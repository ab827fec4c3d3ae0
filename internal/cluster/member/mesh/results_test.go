package mesh

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
)

// resultsOf returns the config of a node whose report is its name and number of pages. A merged report has those of
// departed nodes in brackets.
func resultsOf(n *worldNode) ResultsConfig {
	return ResultsConfig{
		Own: func() []byte { return fmt.Appendf(nil, "%s=%d", n.name, n.pages) },
		Merge: func(present, gone [][]byte) []byte {
			var all []string
			for _, data := range present {
				all = append(all, strings.Fields(string(data))...)
			}
			for _, data := range gone {
				all = append(all, "("+string(data)+")")
			}
			slices.Sort(all)
			return []byte(strings.Join(all, " "))
		}}
}

// wantReport checks the report of all nodes, as gathered by one of them.
func (w *world) wantReport(what string, by *worldNode, gone ...*worldNode) {
	w.t.Helper()
	var want []string
	for _, name := range w.live {
		want = append(want, fmt.Sprintf("%s=%d", name, w.nodes[name].pages))
	}
	for _, n := range gone {
		want = append(want, fmt.Sprintf("(%s=%d)", n.name, n.pages))
	}
	slices.Sort(want)
	by.results = nil
	w.tell(by, GatherResults{Tag: 1})
	for late := w.now.Add(gatherFor); len(by.results) == 0 && w.now.Before(late); {
		w.pass(wireTime)
	}
	if got := strings.Join(by.results, "|"); got != strings.Join(want, " ") {
		w.t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// The report of all has each node once, also those that have died, left or returned.
func TestReportsOfDepartedNodesAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8)
	for i := range 8 {
		w.node(i).pages = int64(1) << i
	}
	w.pass(2 * resultsEvery)
	w.wantReport("at first", w.node(0))
	died, left := w.node(1), w.node(2)
	w.gone(died.name, false)
	w.wantReport("one has died", w.node(0), died)
	left.pages += 1000
	w.tell(left, Leave{})
	for !left.left {
		w.pass(time.Second)
	}
	w.gone(left.name, true)
	w.wantReport("one has left", w.node(3), died, left)
	for i := range 5 { // some are closer to the departed nodes than the keepers of their reports
		w.come(strategy.Node(fmt.Sprintf("new%d~1", i)))
		w.pass(3 * wireTime)
		w.wantReport(fmt.Sprint(i+1, " have come"), w.node(i), died, left)
	}
	kept := map[strategy.Node]map[strategy.Node]Result{}
	for _, n := range w.live {
		kept[n] = w.nodes[n].m.Results()
	}
	for _, n := range w.live { // all are restarted
		w.nodes[n].reported = kept[n]
		w.start(n)
	}
	w.pass(wireTime)
	w.wantReport("all were restarted", w.node(0), died, left)
	w.come(died.name)
	w.pass(3 * wireTime)
	w.wantReport("one is back", w.node(0), left)
}

// All nodes get the report of all.
func TestTheReportIsSpread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 9)
	w.tell(w.node(0), GatherResults{Tag: 1, Spread: true})
	w.pass(10 * time.Second)
	for _, name := range w.live {
		if n := w.nodes[name]; len(n.whole) != 1 || n.whole[0] != "9: "+w.node(0).results[0] {
			t.Errorf("%s has got %q", name, n.whole)
		}
	}
}

// A report without some nodes is not spread.
func TestAnIncompleteReportIsNotSpread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.cut = to(w.node(2))
	w.tell(w.node(0), GatherResults{Tag: 1, Spread: true})
	w.pass(gatherFor + 5*time.Second)
	if n := len(w.node(0).results); n != 1 {
		t.Fatalf("%d reports are gathered", n)
	}
	for _, name := range w.live {
		if got := w.nodes[name].whole; len(got) > 0 {
			t.Errorf("%s has got %q", name, got)
		}
	}
}
