package report

import (
	"fmt"
	"io"
	"slices"
	"time"

	"kumo/internal/lab/sim"
	"kumo/internal/lab/sim/experiments"
)

// Mesh prints the results of the experiments with a decentralized crawler, and writes tables and pictures.
func Mesh(out io.Writer, to *Folder, w *experiments.Mesh, r *experiments.MeshResult) error {
	m := meshSheet{Mesh: w, r: r}
	m.printf("H = %d URLs, T = %v, a sample each %v, seed %d\n", w.Block, w.T, w.Sample, w.Seed)
	for _, print := range []func(){m.scaling, m.nodes, m.areas, m.runs, m.traffic, m.history, m.cost} {
		print()
	}
	m.statements(to, "What the paper states.", w.Judge(r))
	return m.finish(out, to, w.Tables(r), w.Pictures(r))
}

type meshSheet struct {
	sheet
	*experiments.Mesh
	r *experiments.MeshResult
}

func (m *meshSheet) scaling() {
	title := fmt.Sprintf("Experiment 1: nodes that fetch %g URLs a second each", m.Speed)
	m.grid(title, func(tab io.Writer) {
		fmt.Fprintln(tab, "nodes\tsamples\tURLs a sample\tleast\tmost\ta node\t")
		for _, s := range m.Steps(m.r) {
			fmt.Fprintf(tab, "%d\t%d\t%.1f\t%.0f\t%.0f\t%.2f\t\n", s.Nodes, len(s.Samples), s.Mean(), slices.Min(s.Samples),
				slices.Max(s.Samples), s.Mean()/float64(s.Nodes))
		}
	})
}

func (m *meshSheet) nodes() {
	title := fmt.Sprintf("Experiment 2: eight nodes after %v. u by an area of W = %d without balancing, by the "+
		"table's with it", m.Time, m.FixedArea*m.Block)
	m.grid(title, func(tab io.Writer) {
		fmt.Fprintln(tab, "node\tv\tlambda\tW (n)\tnone: u\twaiting\tpaper: u\twaiting\tblocks: u\twaiting\t"+
			"time: u\twaiting\t")
		for i, n := range m.Table {
			fmt.Fprintf(tab, "%d\t%g\t%g\t%d (%d)\t", i+1, n.Speed, n.Arriving, n.Area*m.Block, n.Area)
			for rule := experiments.NoRule; rule <= experiments.ByTime; rule++ {
				run := &m.r.Balance[rule]
				last := len(run.Nodes) - 1
				fmt.Fprintf(tab, "%.2f\t%d\t", m.Ratio(run, last, i), run.Nodes[last][i].Waiting)
			}
			fmt.Fprintln(tab)
		}
	})
}

// areas prints the work areas of the table and those computed by the formula.
func (m *meshSheet) areas() {
	all := append([]time.Duration{m.T}, m.OtherT...)
	slices.Sort(all)
	all = slices.Compact(all)
	m.grid("Areas in blocks, n: the table's, by the formula with v and lambda for each T, and as a run with "+
		"areas of its own ends", func(tab io.Writer) {
		fmt.Fprint(tab, "node\ttable\t")
		for _, t := range all {
			fmt.Fprintf(tab, "%s\t", minutes(t))
		}
		fmt.Fprintf(tab, "own, %s\t\n", minutes(m.T))
		for i, n := range m.Table {
			fmt.Fprintf(tab, "%d\t%d\t", i+1, n.Area)
			for _, t := range all {
				fmt.Fprintf(tab, "%d\t", m.Formula(i, t))
			}
			for _, run := range m.r.Balance {
				if run.OwnAreas {
					fmt.Fprintf(tab, "%d\t\n", run.Nodes[len(run.Nodes)-1][i].Area)
				}
			}
		}
	})
}

// minutes formats a time in its shortest form.
func minutes(d time.Duration) string {
	if d%time.Minute == 0 {
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

func (m *meshSheet) runs() {
	title := fmt.Sprintf("All runs of experiment 2. If all nodes fetched all the time, the rise would be %s",
		percent(m.Ceiling()))
	m.grid(title, func(tab io.Writer) {
		fmt.Fprintln(tab, "rule\tT\tURLs a host\tareas\tfetched\trise\tin the last third\twaiting\tat heavy\t"+
			"light at most\tgiven\t")
		for i := range m.r.Balance {
			run, s := &m.r.Balance[i], m.Summary(m.r, i)
			fmt.Fprintf(tab, "%v\t%s\t%d\t%s\t%d\t%s\t%s\t%d\t%d\tL = %d\t%d\t\n", run.Rule, minutes(run.T),
				run.HostURLs, run.Areas(), s.Fetched, percent(s.Rise), percent(s.LastRise), s.Waiting, s.Heavy, s.MaxLightLevel,
				s.Given)
		}
	})
}

func (m *meshSheet) traffic() {
	m.grid("Experiment 3: what nodes send", func(tab io.Writer) {
		fmt.Fprintln(tab, "rule\tURLs a host\tof\tmessages/s a node\tbytes/s a node\tmessages a page\tbytes a page\t")
		for i := range m.r.Balance {
			run := &m.r.Balance[i]
			if run.T != m.T || run.OwnAreas {
				continue
			}
			for _, t := range m.Traffic(run) {
				fmt.Fprintf(tab, "%v\t%d\t%s\t%.2f\t%.0f\t%.1f\t%.0f\t\n", run.Rule, run.HostURLs, t.Kind, t.Messages, t.Bytes,
					t.PageMessages, t.PageBytes)
			}
		}
	})
}

// history prints what the paper's procedures do with records.
func (m *meshSheet) history() {
	m.grid("History: records of nodes that leave, and of the neighbors of nodes that join, on average", func(tab io.Writer) {
		fmt.Fprintln(tab, "nodes	event	moved	with their list	compared	not looked at	")
		for _, h := range m.r.History {
			for _, e := range []struct {
				name string
				experiments.HistoryMoves
			}{{"leave", h.Leave}, {"join", h.Join}} {
				n := float64(e.Events)
				fmt.Fprintf(tab, "%d	%s	%.1f	%.1f	%.1f	%.1f	\n", h.Nodes, e.name, float64(e.Moved)/n, float64(e.Whole)/n,
					float64(e.Compared)/n, float64(e.Kept)/n)
			}
		}
	})
}

// cost prints the nodes' CPU time if it was measured, and why it is not comparable with the paper's.
func (m *meshSheet) cost() {
	m.printf("\nThe paper's nodes took 15 to 36 %% of a processor, 10 to 13 %% of it when they did not crawl; " +
		"that is not comparable: nothing is fetched, parsed or stored here.\n")
	if m.Processor == nil {
		return
	}
	for rule := experiments.NoRule; rule <= experiments.ByTime; rule++ {
		f := m.r.Balance[rule].Figures[len(m.r.Balance[rule].Figures)-1]
		m.printf("Overlay and mesh took %.0f µs of a processor a second and node, with rule %v.\n",
			float64(f.Processor.Microseconds())/f.NodeTime.Seconds(), rule)
	}
}

// MeshScale prints what nodes send as their number grows, and writes the table and the picture.
func MeshScale(out io.Writer, to *Folder, s *experiments.MeshScale, rows []experiments.MeshScaleRow) error {
	var w sheet
	w.printf("Under churn, nodes stay for %v on average; seed %d\n", s.MeanStay, s.Seed)
	w.grid("The overlay alone: look-ups, a node's table, and what a node sends in a second", func(tab io.Writer) {
		fmt.Fprintln(tab, "nodes\tknown at once\thops of others\tquestions\tright\tcontacts\tbuckets\t"+
			"quiet: messages\tbytes\tchurn: messages\tbytes\t")
		for _, r := range rows {
			fmt.Fprintf(tab, "%d\t%s\t%.2f\t%.1f\t%s\t%.1f\t%.1f\t%.2f\t%.0f\t%.2f\t%.0f\t\n", r.Nodes, percent(r.Direct),
				r.Hops, r.Asked, percent(r.Correct), r.Contacts, r.Buckets, r.Quiet.Messages, r.Quiet.Bytes, r.Churn.Messages,
				r.Churn.Bytes)
		}
	})
	w.grid("The whole machine: messages a page of a crawl, URLs in a node's history after it, and what a node "+
		"sends in a second\nthen, but for the overlay", func(tab io.Writer) {
		fmt.Fprintln(tab, "nodes\tmesh\tlinks\toverlay\thops\thistory\t"+
			"quiet: messages\tbytes\tchurn: messages\tbytes\tURLs copied\tnodes gone\t")
		for _, r := range rows {
			if !r.RanFull {
				fmt.Fprintf(tab, "%d\tnot run\t\t\t\t\t\t\t\t\t\t\t\n", r.Nodes)
				continue
			}
			c := r.Crawl
			fmt.Fprintf(tab, "%d\t%.1f\t%.1f\t%.1f\t%.2f\t%.0f\t%.2f\t%.0f\t%.2f\t%.0f\t%d\t%d\t\n", r.Nodes,
				c.PageMessages[sim.MeshMessage], c.PageMessages[sim.LinksMessage], c.PageMessages[sim.OverlayMessage], c.Hops,
				c.Known, c.Rest.Messages, c.Rest.Bytes, c.Churn.Messages, c.Churn.Bytes,
				c.Copied, c.NodesLeft)
		}
	})
	return w.finish(out, to, []experiments.Table{s.Table(rows)}, []experiments.NamedPicture{s.Picture(rows)})
}
