package experiments

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Scale finds the number of nodes at which the control unit becomes the bottleneck. Nodes fetch as fast as they can
// while they own pending pages. These pages name hosts, and a node must claim a host before it fetches its pages. The
// control unit is a queue for one processor and a log that is appended to one entry at a time, because each entry must
// follow the last.
type Scale struct {
	Hosts     int     // of the web
	Nodes     []int   // of the rows
	Speed     float64 // pages per second that a node fetches while it has some
	Pages     int     // per host
	Found     float64 // hosts with unknown owner named per page
	Start     int     // hosts that a node starts with
	Shards    int     // control units, for Sharded
	Claim     time.Duration
	Message   time.Duration // processor time per message received or sent
	Persist   time.Duration // until a log entry is durable
	Delay     time.Duration // of a message
	Gather    time.Duration // how long a node gathers requests for a batch
	WarmUp    time.Duration // time before the measured period
	Time      time.Duration // length of the measured period
	Seed      uint64
	mostWants int // in a run that searches for the limit
}

// ScaleOfPaper returns an experiment with the paper's hosts of 500 files and with nodes of today. One file in a hundred
// names another host.
func ScaleOfPaper() Scale {
	return Scale{Hosts: 1_000_000, Nodes: []int{10, 20, 50, 100, 200, 500, 1000}, Speed: 500, Pages: 500, Found: 0.01,
		Start: 3, Shards: 4,
		Claim: 5 * time.Microsecond, Message: 20 * time.Microsecond, Persist: 2 * time.Millisecond, Delay: time.Millisecond,
		Gather: 50 * time.Millisecond, WarmUp: 10 * time.Second, Time: 20 * time.Second, Seed: 1, mostWants: 100_000}
}

// A Variant is a design of the control unit.
type Variant uint8

// The variants.
const (
	Single  Variant = iota // each claim is a message and a log entry
	Batched                // a node gathers requests for a message, and the log gathers claims for an entry
	Sharded                // as Batched, with several control units that each have a part of the hosts
)

// Variants lists all variants.
var Variants = []Variant{Single, Batched, Sharded}

func (v Variant) String() string { return [...]string{"single", "batched", "sharded"}[v] }

// A ScaleRow is the result for one number of nodes and one variant.
type ScaleRow struct {
	Nodes       int
	Variant     Variant
	Offered     float64       // claims per second made
	Answered    float64       // claims per second answered
	Backlog     int           // claims made, but not answered
	Median, P99 time.Duration // from finding a host to the answer
	Processor   float64       // share of time for which it is busy, average over control units
	Log         float64       // share of time for which an entry is being written
	Capacity    float64       // pages fetched, as a share of what the nodes could fetch
}

// Saturated reports whether the control unit cannot keep up. A few claims are always in flight.
func (r *ScaleRow) Saturated() bool { return r.Answered < 0.95*r.Offered && r.Backlog > 30 }

// A Limit is the point where a variant saturates.
type Limit struct {
	Variant Variant
	Nodes   int  // smallest number of nodes that saturates it, within 5 %
	Beyond  bool // not saturated in any run; Nodes is then the largest number tried
}

// Rows returns the results, ordered by nodes.
func (s Scale) Rows(ctx context.Context, progress func(done, of int)) (rows []ScaleRow, err error) {
	for _, n := range s.Nodes {
		for _, v := range Variants {
			row, err := s.row(ctx, n, v)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
			progress(len(rows), len(s.Nodes)*len(Variants))
		}
	}
	return rows, nil
}

// maxScaleNodes ends the search for a limit.
const maxScaleNodes = 1 << 17

// Limits searches for the limit of each variant.
func (s Scale) Limits(ctx context.Context) (all []Limit, err error) {
	for _, v := range Variants {
		l, err := s.limit(ctx, v)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

func (s Scale) limit(ctx context.Context, v Variant) (Limit, error) {
	saturated := func(n int) (bool, error) {
		row, err := s.shortened(n).row(ctx, n, v)
		return row.Saturated(), err
	}
	good, bad := 0, 1
	for {
		over, err := saturated(bad)
		if err != nil {
			return Limit{}, err
		}
		if over {
			break
		}
		good, bad = bad, 2*bad
		if bad > maxScaleNodes || s.Start*bad > s.Hosts/2 {
			return Limit{v, good, true}, nil
		}
	}
	for bad-good > max(1, bad/20) {
		n := (good + bad) / 2
		over, err := saturated(n)
		if err != nil {
			return Limit{}, err
		}
		if over {
			bad = n
		} else {
			good = n
		}
	}
	return Limit{v, bad, false}, nil
}

// shortened returns the experiment with shorter periods, so that a run with many nodes takes no longer than one with
// few, and with enough hosts for them.
func (s Scale) shortened(nodes int) Scale {
	rate := s.Speed * s.Found * float64(nodes)
	most := time.Duration(float64(s.mostWants) / rate * float64(time.Second))
	least := 4*(s.Gather+s.Persist+s.Delay) + time.Second
	s.Time = max(least, min(s.Time, most/2))
	s.WarmUp = max(least, min(s.WarmUp, most/2))
	return s
}

// ScaleTable returns the table with all digits.
func ScaleTable(rows []ScaleRow) Table {
	t := newTable("scale", "nodes", "variant", "offered_per_second", "answered_per_second", "median_seconds",
		"p99_seconds", "processor", "log", "capacity")
	for _, r := range rows {
		t.add(r.Nodes, r.Variant, r.Offered, r.Answered, r.Median.Seconds(), r.P99.Seconds(), r.Processor, r.Log, r.Capacity)
	}
	return t
}

// ScalePicture returns the table as curves.
func ScalePicture(rows []ScaleRow, shards int) *Picture {
	panels := []struct {
		title, y string
		log      bool
		of       func(*ScaleRow) float64
	}{
		{"claims answered", "a second", true, func(r *ScaleRow) float64 { return r.Answered }},
		{"answer, 99th percentile", "seconds", true, func(r *ScaleRow) float64 { return r.P99.Seconds() }},
		{"control unit's processor", "part of the time", false, func(r *ScaleRow) float64 { return r.Processor }},
		{"fetching capacity used", "part", false, func(r *ScaleRow) float64 { return r.Capacity }},
	}
	pic := &Picture{Columns: 2}
	for _, p := range panels {
		panel := Panel{Title: p.title, X: "nodes", Y: p.y, LogX: true, LogY: p.log}
		for i := range rows {
			r := &rows[i]
			name := r.Variant.String()
			if r.Variant == Sharded {
				name = fmt.Sprintf("%d control units", shards)
			}
			panel.Curves.add(name, float64(r.Nodes), p.of(r))
		}
		if p.title == "claims answered" {
			panel.Curves = append(panel.Curves, offeredCurve(rows))
		}
		pic.Panels = append(pic.Panels, panel)
	}
	return pic
}

// offeredCurve returns the claims made with the variant that answers most.
func offeredCurve(rows []ScaleRow) Curve {
	c := Curve{Name: "offered"}
	for _, r := range rows {
		if i := slices.Index(c.X, float64(r.Nodes)); i >= 0 {
			c.Y[i] = max(c.Y[i], r.Offered)
		} else {
			c.X, c.Y = append(c.X, float64(r.Nodes)), append(c.Y, r.Offered)
		}
	}
	return c
}
