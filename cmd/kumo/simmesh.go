package main

import (
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/base/machine"
	"kumo/internal/lab/sim/experiments"
	"kumo/internal/lab/sim/report"
)

const simMeshLong = `Make the three experiments again by which Huang, Zeng and Chen judged their crawler
without a centre, on Kademlia.

  1  Scaling: equal nodes that fetch a URL every 10 s, two at first, then 4, 6 and 7
  2  Balance: eight nodes to which URLs come at rates of their own. Nodes give blocks of H = 20 URLs to others that have
     room; the load ratio u is how many URLs wait at a node, by the size of its work area
  3  Overhead: what nodes send each other, with and without balancing

The nodes are kumo's own code; network, engine and web are made up, and time is virtual. Load is balanced by the
paper's rule and by kumo's, and each of the paper's statements is judged by the numbers: seen, or not seen, and why.

--scale asks another question: what does it take to keep nodes together, as they become more? 10,000 nodes take some 6
minutes of a processor and 1.3 GB, 100,000 more than ten times as much of both.

The same flags give the same bytes, but for --cost. docs/explanation/mesh-experiments.md has the results, and what is assumed.`

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
	f.IntVar(&m.scale.FullUpTo, "whole", m.scale.FullUpTo, "with --scale, run the whole machine, with a crawl, for up to `N` "+
		"nodes")
	durationVar(f, &m.scale.MeanStay, "stay", m.scale.MeanStay, "with --scale, let nodes stay for this `TIME` on average")
	f.SortFlags = false
	return m.out.runs(cmd, m.check, m.run)
}

// Beyond these a run would take hours, or more memory than machines have.
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
