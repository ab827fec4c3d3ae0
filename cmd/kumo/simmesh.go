package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/base/machine"
	"kumo/internal/lab/sim/experiments"
	"kumo/internal/view/results"
)

const simMeshLong = `Make the three experiments again by which Huang, Zeng and Chen judged their crawler
without a centre, on Kademlia.

  1  Scaling: equal nodes that fetch a URL every 10 s, two at first, then 4, 6 and 7
  2  Balance: eight nodes to which URLs come at rates of their own. Nodes give blocks of H = 20 URLs to others that have
     room; the load ratio u is how many URLs wait at a node, by the size of its work area
  3  Overhead: what nodes send each other, with and without balancing

The nodes are kumo's own code: overlay, mesh, outbox. Network, engine and web are made up, and time is virtual. Load is
balanced by two rules:

  paper  load goes only to a bucket of nodes that has room for all that a node has too much
  kumo   as much goes to a node as that has room for

Then each of the paper's statements is judged by the numbers: seen, or not seen, and why. The paper does not say how
often nodes look at their load, T. The main runs have 3 minutes, the time between two of its samples; others show what
depends on it.

With --scale another question: what does it take to keep nodes together, as they become more? Hops and questions of a
look-up, contacts of a node, messages and bytes while nobody comes or goes and while nodes stay for 20 minutes on
average. The overlay runs alone for all numbers of nodes, the whole machine, with a crawl, up to --whole nodes. 10,000
nodes take some 6 minutes of a processor and 1.3 GB, 100,000 more than ten times as much of both.

The same flags give the same bytes, but for --cost. docs/mesh.md has the results, and what is assumed.`

const simMeshExample = `  kumo sim mesh                                 # the tables and what is seen, in about a minute
  kumo sim mesh --out mesh                      # and CSV, and pictures as SVG
  kumo sim mesh --intervals 30s --time 4h
  kumo sim mesh --scale --nodes 10,100,1000,10000 --whole 100 --out mesh`

// A meshSim is the command's flags.
type meshSim struct {
	mesh    experiments.Mesh
	scale   experiments.MeshScale
	scaling bool
	cost    bool
	out     simFolder

	intervals []time.Duration
}

func simMesh() *cobra.Command {
	m := meshSim{mesh: experiments.MeshOfPaper(), scale: experiments.MeshScales()}
	cmd := &cobra.Command{Use: "mesh", Short: "Make the experiments of a crawler without a centre again",
		Long: simMeshLong, Example: simMeshExample, Args: cobra.NoArgs}
	f := cmd.Flags()
	m.out.bind(f, "tables as CSV and pictures as SVG")
	f.Uint64Var(&m.mesh.Seed, "seed", m.mesh.Seed, "the seed's `NUMBER`")
	durationVar(f, &m.mesh.Time, "time", m.mesh.Time, "let each run of experiment 2 last this `TIME`")
	f.DurationSliceVar(&m.intervals, "intervals", append([]time.Duration{m.mesh.T}, m.mesh.OtherT...),
		"T: let nodes look at "+
			"their load once in this `TIME,TIME,...`; the first is that of the main runs")
	f.Lookup("intervals").DefValue = "[3m,30s,1m,10m,19m,40m]"
	f.IntSliceVar(&m.mesh.HostURLs, "host-urls", m.mesh.HostURLs, "have hosts of `N,N,...` URLs, too; hosts of one "+
		"always are")
	f.BoolVar(&m.cost, "cost", false, "measure what of the processor's time nodes take")
	f.BoolVar(&m.scaling, "scale", false, "look at what keeping together takes as nodes become more instead")
	f.IntSliceVar(&m.scale.Nodes, "nodes", m.scale.Nodes, "with --scale, have so many nodes, `N,N,...`")
	f.IntVar(&m.scale.Whole, "whole", m.scale.Whole, "with --scale, run the whole machine, with a crawl, for up to `N` "+
		"nodes")
	durationVar(f, &m.scale.Stay, "stay", m.scale.Stay, "with --scale, let nodes stay for this `TIME` on average")
	f.SortFlags = false
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := m.check(cmd); err != nil {
			return err
		}
		if err := m.out.prepare(); err != nil {
			return err
		}
		if m.cost {
			m.mesh.Processor = machine.CPUTime
		}
		if m.scaling {
			return m.runScale(cmd)
		}
		return m.run(cmd)
	}
	return m.out.keeps(cmd)
}

// Beyond these a run would take hours, or more memory than machines have.
const (
	mostMeshNodes = 100_000
	mostWhole     = 10_000
	mostMeshTime  = 48 * time.Hour
)

func (m *meshSim) check(cmd *cobra.Command) (err error) {
	both := []string{"out", "seed", "scale"}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		of := strings.HasPrefix(f.Usage, "with --scale, ")
		if f.Changed && of != m.scaling && !slices.Contains(both, f.Name) {
			err = usagef("--%s says nothing with --scale", f.Name)
			if of {
				err = usagef("--%s says something only with --scale", f.Name)
			}
		}
	})
	if err != nil {
		return err
	}
	w, s := &m.mesh, &m.scale
	for _, n := range s.Nodes {
		if n < 2 || n > mostMeshNodes {
			return usagef("--nodes: from 2 to %d nodes are possible, not %d", mostMeshNodes, n)
		}
	}
	switch {
	case w.Seed < 1:
		return usagef("--seed must be 1 or more")
	case w.Time < 10*w.Sample || w.Time > mostMeshTime:
		return usagef("--time is %v: from %v to %v are possible", w.Time, 10*w.Sample, mostMeshTime)
	case len(s.Nodes) == 0:
		return usagef("--nodes is empty: name numbers of nodes, such as 10,100,1000")
	case s.Whole < 0 || s.Whole > mostWhole:
		return usagef("--whole is %d: up to %d are possible", s.Whole, mostWhole)
	case s.Stay < time.Minute:
		return usagef("--stay is %v: a minute or more is possible", s.Stay)
	}
	if len(m.intervals) == 0 {
		return usagef("--intervals is empty: name times, such as 3m,30s")
	}
	for _, t := range m.intervals {
		if t < time.Second || t > w.Time {
			return usagef("--intervals: from 1s to %v, the time of a run, are possible, not %v", w.Time, t)
		}
	}
	for _, n := range w.HostURLs {
		if n < 1 || n > 64 {
			return usagef("--host-urls: from 1 to 64 URLs are possible, not %d", n)
		}
	}
	w.T, w.OtherT = m.intervals[0], m.intervals[1:]
	s.Seed = w.Seed
	return nil
}

func (m *meshSim) run(cmd *cobra.Command) error {
	show, hide := showRuns()
	r, err := m.mesh.Run(cmd.Context(), show)
	hide()
	if err != nil {
		return err
	}
	out, w := cmd.OutOrStdout(), &m.mesh
	fmt.Fprintf(out, "H = %d URLs, T = %v, a sample each %v, seed %d\n", w.Block, w.T, w.Sample, w.Seed)
	for _, print := range []func(io.Writer, *experiments.MeshResult) error{m.printScaling, m.printNodes, m.printAreas,
		m.printRuns, m.printTraffic} {
		if err := print(out, &r); err != nil {
			return err
		}
	}
	m.printCost(out, &r)
	printMeshJudgement(out, w.Judge(&r))
	for _, t := range w.Tables(&r) {
		if err := m.out.table(t.Name, t.Write); err != nil {
			return err
		}
	}
	for _, p := range w.Pictures(&r) {
		if err := m.out.picture(p.Name, p.Title, p.SVG); err != nil {
			return err
		}
	}
	return nil
}

// grid prints a table for people: cells of a line end with tabs.
func grid(w io.Writer, title string, fill func(tab io.Writer)) error {
	fmt.Fprintf(w, "\n%s\n", title)
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fill(tab)
	return flush(w, tab, &b)
}

func (m *meshSim) printScaling(w io.Writer, r *experiments.MeshResult) error {
	title := fmt.Sprintf("Experiment 1: nodes that fetch %g URLs a second each", m.mesh.Speed)
	return grid(w, title, func(tab io.Writer) {
		fmt.Fprintln(tab, "nodes\tsamples\tURLs a sample\tleast\tmost\ta node\t")
		for _, s := range m.mesh.Steps(r) {
			fmt.Fprintf(tab, "%d\t%d\t%.1f\t%.0f\t%.0f\t%.2f\t\n", s.Nodes, len(s.Samples), s.Mean(), slices.Min(s.Samples),
				slices.Max(s.Samples), s.Mean()/float64(s.Nodes))
		}
	})
}

func (m *meshSim) printNodes(w io.Writer, r *experiments.MeshResult) error {
	title := fmt.Sprintf("Experiment 2: eight nodes after %v. u by an area of W = %d without balancing, by the "+
		"table's with it", m.mesh.Time, m.mesh.Flat*m.mesh.Block)
	return grid(w, title, func(tab io.Writer) {
		fmt.Fprintln(tab, "node\tv\tlambda\tW (n)\tnone: u\twaiting\tpaper: u\twaiting\tkumo: u\twaiting\t")
		for i, n := range m.mesh.Table {
			fmt.Fprintf(tab, "%d\t%g\t%g\t%d (%d)\t", i+1, n.Speed, n.Arriving, n.Area*m.mesh.Block, n.Area)
			for rule := experiments.NoRule; rule <= experiments.ByKumo; rule++ {
				run := &r.Balance[rule]
				last := len(run.Nodes) - 1
				fmt.Fprintf(tab, "%.2f\t%d\t", m.mesh.Ratio(run, last, i), run.Nodes[last][i].Waiting)
			}
			fmt.Fprintln(tab)
		}
	})
}

// printAreas prints the areas of the table beside those that the formula makes.
func (m *meshSim) printAreas(w io.Writer, r *experiments.MeshResult) error {
	all := append([]time.Duration{m.mesh.T}, m.mesh.OtherT...)
	slices.Sort(all)
	all = slices.Compact(all)
	return grid(w, "Areas in blocks, n: the table's, by the formula with v and lambda for each T, and as a run with "+
		"areas of its own ends", func(tab io.Writer) {
		fmt.Fprint(tab, "node\ttable\t")
		for _, t := range all {
			fmt.Fprintf(tab, "%s\t", minutes(t))
		}
		fmt.Fprintf(tab, "own, %s\t\n", minutes(m.mesh.T))
		for i, n := range m.mesh.Table {
			fmt.Fprintf(tab, "%d\t%d\t", i+1, n.Area)
			for _, t := range all {
				fmt.Fprintf(tab, "%d\t", m.mesh.Formula(i, t))
			}
			for _, run := range r.Balance {
				if run.OwnAreas {
					fmt.Fprintf(tab, "%d\t\n", run.Nodes[len(run.Nodes)-1][i].Area)
				}
			}
		}
	})
}

// minutes is a time as short as it can be written.
func minutes(d time.Duration) string {
	if d%time.Minute == 0 {
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

func (m *meshSim) printRuns(w io.Writer, r *experiments.MeshResult) error {
	title := fmt.Sprintf("All runs of experiment 2. Where all nodes fetch all the time, the rise is %s",
		percent(m.mesh.Ceiling()))
	return grid(w, title, func(tab io.Writer) {
		fmt.Fprintln(tab, "rule\tT\tURLs a host\tareas\tfetched\trise\tin the last third\twaiting\tat heavy\t"+
			"light at most\tgiven\t")
		for i := range r.Balance {
			run, s := &r.Balance[i], m.mesh.Summary(r, i)
			areas := "table"
			if run.OwnAreas {
				areas = "own"
			} else if run.Rule == experiments.NoRule {
				areas = "same"
			}
			fmt.Fprintf(tab, "%v\t%s\t%d\t%s\t%d\t%s\t%s\t%d\t%d\tL = %d\t%d\t\n", run.Rule, minutes(run.T), run.HostURLs, areas,
				s.Fetched, percent(s.Rise), percent(s.LastRise), s.Waiting, s.Heavy, s.MostOfLight, s.Given)
		}
	})
}

func (m *meshSim) printTraffic(w io.Writer, r *experiments.MeshResult) error {
	return grid(w, "Experiment 3: what nodes send", func(tab io.Writer) {
		fmt.Fprintln(tab, "rule\tURLs a host\tof\tmessages/s a node\tbytes/s a node\tmessages a page\tbytes a page\t")
		for i := range r.Balance {
			run := &r.Balance[i]
			if run.T != m.mesh.T || run.OwnAreas {
				continue
			}
			for _, t := range m.mesh.Traffic(run) {
				fmt.Fprintf(tab, "%v\t%d\t%s\t%.2f\t%.0f\t%.1f\t%.0f\t\n", run.Rule, run.HostURLs, t.Kind, t.Messages, t.Bytes,
					t.PageMessages, t.PageBytes)
			}
		}
	})
}

// printCost says what nodes took of the processor, if it was measured, and what that is not.
func (m *meshSim) printCost(w io.Writer, r *experiments.MeshResult) {
	fmt.Fprint(w, "\nThe paper's nodes took 15 to 36 % of a processor, 10 to 13 % of it when they did not crawl; "+
		"that is not comparable: nothing is fetched, parsed or stored here.\n")
	if m.mesh.Processor == nil {
		return
	}
	for rule := experiments.NoRule; rule <= experiments.ByKumo; rule++ {
		f := r.Balance[rule].Figures[len(r.Balance[rule].Figures)-1]
		fmt.Fprintf(w, "Overlay and mesh took %.0f µs of a processor a second and node, with rule %v.\n",
			float64(f.Processor.Microseconds())/f.NodeTime.Seconds(), rule)
	}
}

func printMeshJudgement(w io.Writer, all []experiments.MeshStatement) {
	fmt.Fprintln(w, "\nWhat the paper states.")
	var told []results.Statement
	for _, s := range all {
		of := fmt.Sprintf("experiment %d", s.Experiment)
		if s.Rule != experiments.NoRule {
			of += fmt.Sprintf(", rule %v", s.Rule)
		}
		told = append(told, results.Statement{Of: of, Seen: s.Seen, Statement: s.Text, Measured: s.Numbers, Why: s.Why})
	}
	printStatements(w, told)
}
