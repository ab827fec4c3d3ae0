package main

import (
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/base/machine"
	"kumo/internal/lab/sim/experiments"
	"kumo/internal/lab/sim/report"
)

const simMeshLong = `Repeat the three experiments with which Huang, Zeng and Chen evaluated their crawler without a
center, based on Kademlia.

  1  Scaling: equal nodes that fetch a URL every 10 s, first two, then 4, 6 and 7
  2  Balance: eight nodes that receive URLs at different rates. Nodes pass blocks of H = 20 URLs to
     others with capacity; the load ratio u is the number of a node's pending URLs divided by the
     size of its work area
  3  Overhead: messages between nodes, with and without balancing

The nodes are kumo's own code; network, engine and web are simulated in virtual time. Load is
balanced by the paper's rule and by kumo's. Each statement of the paper is compared with the
numbers: seen or not seen, and why.

--scale answers another question: what does membership cost as the number of nodes grows? 10,000
nodes take some 6 minutes of CPU and 1.3 GB, 100,000 more than ten times as much of both.

The same flags give the same bytes, except with --cost. See docs/explanation/mesh-experiments.md for
results and assumptions.`

const simMeshExample = `  kumo sim mesh                                 # the tables and what is seen, in about a minute
  kumo sim mesh --out mesh                      # and CSV, and pictures as SVG
  kumo sim mesh --intervals 30s --time 4h
  kumo sim mesh --scale --nodes 10,100,1000,10000 --whole 100 --out mesh`

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
	cmd := &cobra.Command{Use: "mesh", Short: "Repeat the experiments of a crawler without a center",
		Long: simMeshLong, Example: simMeshExample, Args: cobra.NoArgs}
	f := cmd.Flags()
	m.out.bind(f, "tables as CSV and plots as SVG")
	f.Uint64Var(&m.mesh.Seed, "seed", m.mesh.Seed, "`NUMBER` of the seed")
	durationVar(f, &m.mesh.Time, "time", m.mesh.Time, "`TIME` of each run of experiment 2")
	f.DurationSliceVar(&m.intervals, "intervals", append([]time.Duration{m.mesh.T}, m.mesh.OtherT...),
		"T: nodes check "+
			"their load at this interval, `TIME,TIME,...`; the first is that of the main runs")
	f.Lookup("intervals").DefValue = "[3m,30s,1m,10m,19m,40m]"
	f.IntSliceVar(&m.mesh.HostURLs, "host-urls", m.mesh.HostURLs, "also use hosts of `N,N,...` URLs; hosts of one "+
		"always are")
	f.BoolVar(&m.cost, "cost", false, "measure the CPU time of nodes")
	f.BoolVar(&m.scaling, "scale", false, "instead, measure the cost of membership as the number of nodes grows")
	f.IntSliceVar(&m.scale.Nodes, "nodes", m.scale.Nodes, "with --scale, numbers of nodes, `N,N,...`")
	f.IntVar(
		&m.scale.FullUpTo,
		"whole",
		m.scale.FullUpTo,
		"with --scale, run complete nodes, with a crawl, for up to `N` "+
			"nodes",
	)
	durationVar(f, &m.scale.MeanStay, "stay", m.scale.MeanStay, "with --scale, mean `TIME` that a node stays")
	f.SortFlags = false
	return m.out.runs(cmd, m.check, m.run)
}

// Beyond these limits, a run would take hours, or more memory than machines have.
const (
	mostMeshNodes = 100_000
	mostWhole     = 10_000
	mostMeshTime  = 48 * time.Hour
)

func (m *meshSim) check(cmd *cobra.Command) error {
	if err := checkScaling(cmd, m.scaling, "out", "seed", "scale"); err != nil {
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
	case s.FullUpTo < 0 || s.FullUpTo > mostWhole:
		return usagef("--whole is %d: up to %d are possible", s.FullUpTo, mostWhole)
	case s.MeanStay < time.Minute:
		return usagef("--stay is %v: a minute or more is possible", s.MeanStay)
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
	if m.cost {
		m.mesh.Processor = machine.CPUTime
	}
	if m.scaling {
		return m.runScale(cmd)
	}
	r, err := withProgress(cmd, m.mesh.Run)
	if err != nil {
		return err
	}
	return report.Mesh(cmd.OutOrStdout(), &m.out.Folder, &m.mesh, &r)
}

func (m *meshSim) runScale(cmd *cobra.Command) error {
	rows, err := withProgress(cmd, m.scale.Rows)
	if err != nil {
		return err
	}
	return report.MeshScale(cmd.OutOrStdout(), &m.out.Folder, &m.scale, rows)
}
