package experiments

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/lab/testmain"
)

// small is the paper's world with a tenth of its files.
func small() DSpider {
	d := DSpiderOfPaper()
	d.Files, d.LinkChance, d.Runs, d.Nodes, d.Timeouts = 20_000, 0.1, 2, []int{3, 5, 7}, []float64{3, 6}
	return d
}

func allRuns(t *testing.T, d DSpider) []Point {
	t.Helper()
	points, err := d.Run(t.Context(), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return points
}

// TestDSpiderConserves: kumo's mode fetches each file once; the paper's each that it can: those of hosts that a node
// reaches within the timeout and that a file names which can be fetched.
func TestDSpiderConserves(t *testing.T) {
	d := small()
	d.Seed = 11
	for _, decider := range []Decider{ByHub, ByPlain} {
		d.Decider, d.RoundRobin = decider, decider == ByPlain
		for _, p := range allRuns(t, d) {
			for i, f := range p.Runs {
				seed := d.Seed + uint64(i)
				switch {
				case f.Downloads < f.Distinct || f.Distinct == 0:
					t.Errorf("seed %d, %+v: %+v", seed, p.Setting, f)
				case p.Mode == AsKumo && (f.Missed != 0 || f.Duplicate != 0):
					t.Errorf("%v, seed %d, %+v: missed %v, fetched in vain %v", decider, seed, p.Setting, f.Missed, f.Duplicate)
				case p.Mode == AsPaper && math.Abs(f.Missed-f.Unreachable-f.Unfound) > 1e-9:
					t.Errorf("seed %d, %+v: missed %v, though out of reach are %v and unnamed %v", seed, p.Setting, f.Missed, f.Unreachable,
						f.Unfound)
				}
				if sum := f.Connect + f.Transfer + f.TimedOut + f.Idle; math.Abs(sum-1) > 1e-6 || f.LinkUse > 1+1e-6 {
					t.Errorf("seed %d, %+v: parts of a node's time make %v, %v of the bandwidth are used", seed, p.Setting, sum,
						f.LinkUse)
				}
			}
		}
	}
}

// TestDSpiderMoves: nothing is lost where messages are so slow that hosts come to nodes that have them already.
func TestDSpiderMoves(t *testing.T) {
	d := small()
	d.WAN.Message, d.Timeouts, d.Nodes, d.Runs = 20, []float64{2, 3}, []int{5}, 3
	for _, p := range allRuns(t, d) {
		for i, f := range p.Runs {
			if p.Mode == AsKumo && f.Missed != 0 {
				t.Errorf("seed %d, %+v: missed %v", d.Seed+uint64(i), p.Setting, f.Missed)
			}
		}
	}
}

// TestDSpiderOutOfReach: with a timeout of 5T each of n nodes of a WAN fails four ninths of the hosts, and all nodes of
// a LAN the same.
func TestDSpiderOutOfReach(t *testing.T) {
	d := small()
	d.Hosts, d.Files, d.Runs, d.Nodes, d.Timeouts, d.Decider = 2000, 20_000, 3, []int{1, 2, 3, 5}, []float64{5}, ByPlain
	for _, p := range allRuns(t, d) {
		want := 4. / 9
		if p.Network == WAN {
			want = math.Pow(want, float64(p.Nodes))
		}
		got, _ := meanAndDeviation(p.Each(func(f *Figures) float64 { return f.Unreachable }))
		if bound := 4 * math.Sqrt(want*(1-want)/6000); math.Abs(got-want) > bound {
			t.Errorf("%+v: %v of the hosts are out of reach, %v expected, within %v", p.Setting, got, want, bound)
		}
	}
}

// TestDSpiderSpeed: a node that fetches one file after another takes as long for each as its connection and its
// bandwidth do.
func TestDSpiderSpeed(t *testing.T) {
	d := small()
	d.Delays, d.Nodes, d.Timeouts, d.FewNodes, d.Runs = 1, []int{1}, []float64{1}, 1, 1
	for _, p := range allRuns(t, d) {
		f := p.Runs[0]
		width := d.net(p.Network).Bandwidth
		one := 5.5 / (1 + 5.5/width)
		if p.Loading == OneByOne && math.Abs(f.Speed/one-1) > 0.02 {
			t.Errorf("%+v: %v f/T, %v expected", p.Setting, f.Speed, one)
		}
		if p.Loading == Saturated && (f.Speed > width || f.Speed < 0.9*width) {
			t.Errorf("%+v: %v f/T of %v", p.Setting, f.Speed, width)
		}
	}
}

// TestDSpiderAgain: the same seed is the same figures, tables and pictures; another one is not.
func TestDSpiderAgain(t *testing.T) {
	testmain.Slow(t)
	d := small()
	d.Runs, d.Nodes, d.Timeouts = 1, []int{3, 5}, []float64{4, 6}
	write := func() (points []Point, all []byte) {
		points = allRuns(t, d)
		var b bytes.Buffer
		for _, figure := range InFigures(points) {
			table := FigureTable(figure)
			if err := errors.Join(table.Write(&b), Figure(figure).Write(&b)); err != nil {
				t.Fatal(err)
			}
		}
		return points, b.Bytes()
	}
	points, first := write()
	again, second := write()
	if !reflect.DeepEqual(points, again) || !bytes.Equal(first, second) {
		t.Error("the same seed makes something else")
	}
	d.Seed++
	if _, other := write(); bytes.Equal(first, other) {
		t.Error("another seed makes the same")
	}
}

func TestDSpiderInterrupted(t *testing.T) {
	d := small()
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	_, err := d.Run(ctx, func(int, int) {
		done++
		cancel()
	})
	if !errors.Is(err, context.Canceled) || done != 1 {
		t.Errorf("%v after %d runs", err, done)
	}
}

// TestPipe: transfers share the bandwidth while they run.
func TestPipe(t *testing.T) {
	p := newSharedLink(10)
	p.begin(0, 20, 1)
	p.begin(ticks(1), 10, 2) // 10 of the first are left: both end 2T later, but for rounding
	p.begin(ticks(2), 5, 3)  // 5 each
	var ends []float64
	for range 3 {
		at := p.nextEnd
		p.finish()
		ends = append(ends, math.Round(1000*inTicks(at))/1000)
	}
	if want := []float64{3.5, 3.5, 3.5}; !reflect.DeepEqual(ends, want) || p.nextEnd != forever ||
		math.Abs(p.moved-35) > 1e-6 {
		t.Errorf("they ended at %v, not %v, and moved %v", ends, want, p.moved)
	}
	p.begin(ticks(10), 20, 4)
	if math.Abs(inTicks(p.nextEnd)-12) > 1e-6 {
		t.Errorf("one alone takes until %vT", inTicks(p.nextEnd))
	}
}

// TestPaperDecides: the paper's algorithm, message by message.
func TestPaperDecides(t *testing.T) {
	nodes := []strategy.Node{"a", "b", "c"}
	u := &paperControl{knownOwners{}, nodes}
	ask := func(from strategy.Node, kind byte) []strategy.Action {
		data := hostRequest{kind: kind, host: "h"}.to("control").Data
		return u.Step(time.Time{}, []strategy.Event{strategy.Message{From: from, Data: data}}, nil)
	}
	for i, c := range []struct {
		from strategy.Node
		kind byte
		want []strategy.Action
	}{
		{"b", reqFailed, []strategy.Action{hostRequest{kind: reqTry, host: "h"}.to("a"),
			hostRequest{kind: reqTry, host: "h"}.to("c")}},
		{"c", reqClaim, []strategy.Action{hostRequest{reqOwner, "h", "c"}.to("c")}}, // granted
		{"a", reqClaim, []strategy.Action{hostRequest{reqOwner, "h", "c"}.to("a")}}, // refused
		{"b", reqFailed, []strategy.Action{hostRequest{reqOwner, "h", "c"}.to("b")}},
	} {
		if got := ask(c.from, c.kind); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
	n := &paperNode{knownOwners{}, "a", "control", tick}
	told := func(e strategy.Event) []strategy.Action { return n.Step(time.Time{}, []strategy.Event{e}, nil) }
	probe, changed := strategy.Probe{Host: "h", Timeout: tick}, strategy.ViewChanged{}
	for i, c := range []struct {
		told  strategy.Event
		want  []strategy.Action
		owner strategy.Node
	}{
		{strategy.OwnersNeeded{Hosts: []string{"h"}}, []strategy.Action{probe, changed}, "a"}, // provisionally
		{strategy.Message{Data: hostRequest{kind: reqTry, host: "h"}.to("a").Data}, []strategy.Action{changed}, "a"},
		{strategy.ProbeResult{Host: "h", OK: true}, []strategy.Action{hostRequest{kind: reqClaim, host: "h"}.to("control"),
			changed}, "a"},
		{strategy.Message{Data: hostRequest{reqOwner, "h", "c"}.to("a").Data}, []strategy.Action{changed}, "c"},
	} {
		got := told(c.told)
		if owner, _ := n.View().Owner("h"); !reflect.DeepEqual(got, c.want) || owner != c.owner {
			t.Errorf("%d: %v of %s, want %v of %s", i, got, owner, c.want, c.owner)
		}
	}
	told(strategy.ProbeResult{Host: "f"})
	if got := told(strategy.OwnersNeeded{Hosts: []string{"f"}}); len(got) != 1 {
		t.Errorf("a host that failed is tried again: %v", got)
	}
}
