package experiments

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Scale asks at how many nodes the control unit is the limit. Nodes fetch as fast as they can while they own pages that
// wait; what they fetch names hosts, and each of these has to be asked for before its pages can be fetched. The control
// unit is a queue for one processor, and a log to which one entry is added at a time, because each has to follow the
// one before.
type Scale struct {
	Hosts     int     // of the web
	Nodes     []int   // of the table
	Speed     float64 // pages a second that a node fetches, if it has them
	Pages     int     // of a host
	Found     float64 // hosts that a page names whose owners the node does not know
	Start     int     // hosts that a node begins with
	Shards    int     // control units, where there are several
	Claim     time.Duration
	Message   time.Duration // of the processor's time, for each that comes or goes
	Persist   time.Duration // until an entry is in the log
	Delay     time.Duration // of a message on its way
	Gather    time.Duration // that a node waits for more to ask, with batches
	WarmUp    time.Duration // before figures are taken
	Time      time.Duration // for which they are
	Seed      uint64
	mostWants int // in a run that looks for the limit
}

// ScaleOfPaper has the paper's hosts of 500 files, of which one in a hundred names another host, and nodes of today.
func ScaleOfPaper() Scale {
	return Scale{Hosts: 1_000_000, Nodes: []int{10, 20, 50, 100, 200, 500, 1000}, Speed: 500, Pages: 500, Found: 0.01,
		Start: 3, Shards: 4,
		Claim: 5 * time.Microsecond, Message: 20 * time.Microsecond, Persist: 2 * time.Millisecond, Delay: time.Millisecond,
		Gather: 50 * time.Millisecond, WarmUp: 10 * time.Second, Time: 20 * time.Second, Seed: 1, mostWants: 100_000}
}

// A Variant is a way to build the control unit.
type Variant uint8

// The variants.
const (
	Single  Variant = iota // each claim is a message and an entry of the log
	Batched                // what a node wants within a while is a message, and what waits for the log an entry
	Sharded                // the same, for several control units that have a part of the hosts each
)

// Variants are all of them.
var Variants = []Variant{Single, Batched, Sharded}

func (v Variant) String() string { return [...]string{"single", "batched", "sharded"}[v] }

// A ScaleRow is what one number of nodes came to with one variant.
type ScaleRow struct {
	Nodes       int
	Variant     Variant
	Offered     float64       // claims a second that nodes make
	Answered    float64       // that are answered
	Backlog     int           // more claims were made than answered
	Median, P99 time.Duration // from finding a host until the answer is there
	Processor   float64       // part of the time that it works, on average over control units
	Log         float64       // part of the time that an entry is under way
	Capacity    float64       // part of what nodes could fetch that they do
}

// Saturated reports whether more is asked than can be answered; some are always under way.
func (r *ScaleRow) Saturated() bool { return r.Answered < 0.95*r.Offered && r.Backlog > 30 }

// Limit is where a variant saturates.
type Limit struct {
	Variant Variant
	Nodes   int  // the least number with which it does, to a twentieth
	Beyond  bool // it does with none that was tried; Nodes is the greatest of those
}

// Rows makes the table, ordered by nodes.
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

// maxScaleNodes is beyond what is looked for.
const maxScaleNodes = 1 << 17

// Limits looks for where each variant saturates.
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

// shortened is the same for less time, so that a run with many nodes takes no longer than one with few, and with so many
// hosts that they do not come to an end.
func (s Scale) shortened(nodes int) Scale {
	rate := s.Speed * s.Found * float64(nodes)
	most := time.Duration(float64(s.mostWants) / rate * float64(time.Second))
	least := 4*(s.Gather+s.Persist+s.Delay) + time.Second
	s.Time = max(least, min(s.Time, most/2))
	s.WarmUp = max(least, min(s.WarmUp, most/2))
	return s
}

// ScaleTable is the table with all digits.
func ScaleTable(rows []ScaleRow) Table {
	t := newTable("scale", "nodes", "variant", "offered_per_second", "answered_per_second", "median_seconds",
		"p99_seconds", "processor", "log", "capacity")
	for _, r := range rows {
		t.add(r.Nodes, r.Variant, r.Offered, r.Answered, r.Median.Seconds(), r.P99.Seconds(), r.Processor, r.Log, r.Capacity)
	}
	return t
}

// ScalePicture is the table as curves.
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

// offeredCurve is what nodes ask with the variant that answers most.
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
