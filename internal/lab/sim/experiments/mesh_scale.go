package experiments

import (
	"context"
	"slices"
	"strconv"
	"time"

	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/overlay/overlaytest"
	"kumo/internal/lab/sim"
)

// MeshScale measures the communication that keeps decentralized nodes together as their number grows. For each number
// the overlay runs alone: first with a fixed set of nodes, then with nodes that leave after some time and are replaced,
// half of them without notice. No message is lost. If there are few enough nodes, the complete nodes also run, with a
// crawl.
type MeshScale struct {
	Nodes    []int
	FullUpTo int           // largest number of nodes for which the complete nodes run
	MeanStay time.Duration // average stay of a node
	Seed     uint64

	Joining  time.Duration // time within which the nodes join
	WarmUp   time.Duration // time before each measured period
	Measured time.Duration // length of each measured period
	LookUps  int           // look-ups that hops are measured with
}

// MeshScales returns an experiment that ends within two minutes.
func MeshScales() MeshScale {
	return MeshScale{Nodes: []int{10, 100, 1000}, FullUpTo: 1000, MeanStay: 20 * time.Minute, Seed: 1,
		Joining: 30 * time.Second,
		WarmUp:  time.Minute, Measured: time.Minute, LookUps: 600}
}

// A MeshScaleRow is the result for a number of nodes.
type MeshScaleRow struct {
	Nodes    int
	Direct   float64 // share of look-ups that a node answers from its own table
	Hops     float64 // of the other look-ups, to the closest node found
	Asked    float64 // requests of the other look-ups
	Correct  float64 // share of look-ups under churn that found the three closest nodes
	Contacts float64 // in all buckets of a node
	Buckets  float64 // of a node, that are not empty
	Quiet    Rate    // while no node joins or leaves
	Churn    Rate    // while nodes join and leave

	RanFull bool        // the complete nodes ran, too
	Crawl   FullFigures // their result
}

// A Rate is what a node sends per second.
type Rate struct{ Messages, Bytes float64 }

// FullFigures are the results of the complete nodes.
type FullFigures struct {
	PageMessages [len(sim.MessageKinds)]float64 // per page and kind, while no node joins or leaves
	Hops         float64                        // per look-up of the crawl
	Known        float64                        // URLs in a node's history after the crawl
	// after the crawl, without the overlay's messages: while no node joins or leaves, and under churn
	Rest, Churn Rate
	Copied      int // URLs added to histories under churn
	NodesLeft   int // nodes that left under churn
}

// Rows returns the results. The only error is that of ctx.
func (s *MeshScale) Rows(ctx context.Context, progress func(done, of int)) (rows []MeshScaleRow, err error) {
	for i, n := range s.Nodes {
		row := s.overlays(ctx, n)
		if n <= s.FullUpTo && ctx.Err() == nil {
			row.RanFull, row.Crawl = true, s.whole(n)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows = append(rows, row)
		progress(i+1, len(s.Nodes))
	}
	return rows, nil
}

func (s *MeshScale) overlays(ctx context.Context, nodes int) MeshScaleRow {
	w := overlaytest.New(s.Seed)
	run := func(d time.Duration) {
		for end := w.Now() + d; w.Now() < end && ctx.Err() == nil; {
			w.Run(min(time.Second, end-w.Now()))
		}
	}
	for i, name := range w.Names(nodes) {
		if i == 0 {
			w.Start(name)
		} else {
			w.Start(name, w.RandomNode().Name)
		}
		run(s.Joining / time.Duration(nodes))
	}
	row := MeshScaleRow{Nodes: nodes}
	measure := func() Rate {
		run(s.WarmUp)
		w.Reset()
		run(s.Measured)
		seconds := s.Measured.Seconds() * float64(len(w.Live()))
		return Rate{float64(w.Messages) / seconds, float64(w.Bytes) / seconds}
	}
	row.Quiet = measure()
	row.Contacts, row.Buckets = tables(w)
	s.churn(w, nodes)
	row.Churn = measure()
	s.lookUps(w, run, &row)
	return row
}

// tables returns a node's average number of contacts and of buckets that are not empty.
func tables(w *overlaytest.World) (contacts, buckets float64) {
	for _, n := range w.Live() {
		contacts += float64(n.Len())
		for _, b := range n.Occupied() {
			for ; b > 0; b &= b - 1 {
				buckets++
			}
		}
	}
	live := float64(len(w.Live()))
	return contacts / live, buckets / live
}

func (s *MeshScale) churn(w *overlaytest.World, nodes int) {
	rng := w.Rand()
	var next func()
	next = func() {
		if n := w.RandomNode(); rng.IntN(2) == 0 {
			w.Leave(n)
		} else {
			w.Crash(n)
		}
		w.Start(w.Names(1)[0], w.RandomNode().Name, w.RandomNode().Name, w.RandomNode().Name)
		w.After(time.Duration(rng.ExpFloat64()*float64(s.MeanStay)/float64(nodes)), next)
	}
	w.After(time.Duration(rng.ExpFloat64()*float64(s.MeanStay)/float64(nodes)), next)
}

// lookUps lets nodes look up random ids, twenty per second.
func (s *MeshScale) lookUps(w *overlaytest.World, run func(time.Duration), row *MeshScaleRow) {
	found, right := 0, 0
	for range s.LookUps {
		id := overlay.IDOf(strconv.FormatUint(w.Rand().Uint64(), 36))
		n := w.RandomNode()
		for n.LookUps() > 0 {
			n = w.RandomNode()
		}
		n.OnFound = func(f overlay.Found) {
			if found++; same(f.Closest, w.Closest(id, 3)) {
				right++
			}
		}
		n.Handle(overlay.Find{ID: id, Want: 3})
		run(time.Second / 20)
	}
	run(10 * time.Second)
	var sum overlay.Stats
	for _, n := range w.Live() {
		t := n.Stats()
		sum.LookUps, sum.Asked, sum.Hops = sum.LookUps+t.LookUps, sum.Asked+t.Asked, sum.Hops+t.Hops
	}
	if sum.LookUps > 0 {
		row.Hops, row.Asked = float64(sum.Hops)/float64(sum.LookUps), float64(sum.Asked)/float64(sum.LookUps)
	}
	row.Direct = 1 - float64(sum.LookUps)/float64(max(found, 1))
	row.Correct = float64(right) / float64(max(found, 1))
}

func same(found []overlay.Contact, names []string) bool {
	return slices.EqualFunc(found, names, func(c overlay.Contact, name string) bool { return c.Node == name })
}

func (s *MeshScale) whole(nodes int) (f FullFigures) {
	u := sim.RunUpkeep(sim.MeshConfig{Nodes: nodes, Hosts: 4 * nodes, Pages: 8, Loss: -1, Spread: s.Joining,
		MeanStay: s.MeanStay},
		2*s.Measured, s.Seed)
	pages := float64(max(u.Crawl.Requests, 1))
	for k := range f.PageMessages {
		f.PageMessages[k] = float64(u.Crawl.Messages[k]) / pages
	}
	repair := func(g *sim.MeshFigures) Rate {
		n, b := g.Messages[sim.MeshMessage]+g.Messages[sim.LinksMessage], g.Bytes[sim.MeshMessage]+g.Bytes[sim.LinksMessage]
		return Rate{float64(n) / g.NodeTime.Seconds(), float64(b) / g.NodeTime.Seconds()}
	}
	f.Rest, f.Churn, f.Known = repair(&u.Rest), repair(&u.Churn), u.Known
	f.Copied, f.NodesLeft = u.Churn.Recorded, u.Churn.Faults
	if n := u.Crawl.LookUps.LookUps; n > 0 {
		f.Hops = float64(u.Crawl.LookUps.Hops) / float64(n)
	}
	return f
}

// Table returns the rows with all digits. Cells that were not measured are empty.
func (s *MeshScale) Table(rows []MeshScaleRow) Table {
	t := newTable("scale", "nodes", "hops", "questions", "direct", "right", "contacts", "buckets",
		"quiet_messages_per_node_second", "quiet_bytes_per_node_second", "churn_messages_per_node_second",
		"churn_bytes_per_node_second", "whole_machine")
	for _, kind := range sim.MessageKinds {
		t.Lines[0] = append(t.Lines[0], kind+"_messages_per_page")
	}
	t.Lines[0] = append(t.Lines[0], "crawl_hops", "known_per_node", "mesh_quiet_messages_per_node_second",
		"mesh_quiet_bytes_per_node_second", "mesh_churn_messages_per_node_second", "mesh_churn_bytes_per_node_second",
		"urls_copied", "nodes_gone")
	for _, r := range rows {
		line, c := []any{r.Nodes, r.Hops, r.Asked, r.Direct, r.Correct, r.Contacts, r.Buckets, r.Quiet.Messages,
			r.Quiet.Bytes,
			r.Churn.Messages, r.Churn.Bytes, r.RanFull}, &r.Crawl
		for _, x := range append(c.PageMessages[:], c.Hops, c.Known, c.Rest.Messages, c.Rest.Bytes, c.Churn.Messages,
			c.Churn.Bytes, float64(c.Copied), float64(c.NodesLeft)) {
			if r.RanFull {
				line = append(line, x)
			} else {
				line = append(line, "")
			}
		}
		t.add(line...)
	}
	return t
}

// Picture returns the table as curves.
func (s *MeshScale) Picture(rows []MeshScaleRow) NamedPicture {
	curve := func(name string, whole bool, of func(*MeshScaleRow) float64) (c Curve) {
		c.Name = name
		for i := range rows {
			if rows[i].RanFull || !whole {
				c.X, c.Y = append(c.X, float64(rows[i].Nodes)), append(c.Y, of(&rows[i]))
			}
		}
		return c
	}
	var kinds []Curve
	for k, kind := range sim.MessageKinds {
		kinds = append(kinds, curve(kind, true, func(r *MeshScaleRow) float64 { return r.Crawl.PageMessages[k] }))
	}
	panel := func(title string, curves ...Curve) Panel {
		return Panel{Title: title, X: "nodes", LogX: true, Curves: curves}
	}
	return NamedPicture{"scale", "Traffic that keeps nodes together", Picture{Columns: 1, Panels: []Panel{
		panel("a look-up",
			curve("hops", false, func(r *MeshScaleRow) float64 { return r.Hops }),
			curve("questions", false, func(r *MeshScaleRow) float64 { return r.Asked })),
		panel("contacts of a node", curve("contacts", false, func(r *MeshScaleRow) float64 { return r.Contacts })),
		panel("messages of the overlay, a node and second",
			curve("no node joins or leaves", false, func(r *MeshScaleRow) float64 { return r.Quiet.Messages }),
			curve("nodes join and leave", false, func(r *MeshScaleRow) float64 { return r.Churn.Messages })),
		panel("messages a page, whole machine", kinds...)}}}
}
