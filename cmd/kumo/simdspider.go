package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/setting"
	"kumo/internal/lab/sim/experiments"
	"kumo/internal/lab/sim/report"
)

const simDSpiderLong = `Repeat the two experiments with which DSpider (Wu, Ke, He and Liu, 2011) was evaluated, in
virtual time.

  paper   its rules: fetch from a host at once, then claim it, and drop it if another node owns it
  kumo    the code of --strategy hub: ask, probe, claim, and fetch from granted hosts

Nodes fetch one file after another, or so many at once that their links are saturated. Each
statement of the paper is compared with the numbers: seen or not seen. f is a unit of size and T one
of time. See docs/explanation/dspider-experiments.md for the measures, results and assumptions.

--scale answers another question: at how many nodes does the control unit become the bottleneck?

The same flags give the same bytes, in tables and plots.`

const simDSpiderExample = `  kumo sim dspider                   # tables and conclusions, in about a minute
  kumo sim dspider --out dspider     # also CSV files, and plots for bench/plot to draw as PNG and SVG
  kumo sim dspider --share running   # nodes that are transferring share a LAN's bandwidth
  kumo sim dspider --scale --out dspider --persist-time 10ms`

type dspider struct {
	world   experiments.DSpider
	scale   experiments.Scale
	scaling bool
	share   string
	order   string
	decider string
	out     simFolder
}

func simDSpider() *cobra.Command {
	d := dspider{world: experiments.DSpiderOfPaper(), scale: experiments.ScaleOfPaper(), share: "parts", order: "host",
		decider: "hub"}
	cmd := &cobra.Command{Use: "dspider", Short: "Repeat DSpider's experiments", Long: simDSpiderLong,
		Example: simDSpiderExample, Args: cobra.NoArgs}
	d.flags(cmd)
	return d.out.runs(cmd, d.check, d.run)
}

func (d *dspider) flags(cmd *cobra.Command) {
	f, w := cmd.Flags(), &d.world
	d.out.bind(f, "tables as CSV, plots as SVG, and as JSON, which go run -C bench/plot . DIR plots,")
	f.IntVar(&w.Runs, "runs", w.Runs, "repeat each run with `K` seeds; tables show mean and standard deviation")
	f.Uint64Var(&w.Seed, "seed", w.Seed, "`NUMBER` of the first seed")
	f.IntVar(&w.Files, "files", w.Files, "create a web of `K` files")
	f.IntVar(&w.Hosts, "hosts", w.Hosts, "distribute them evenly over `N` hosts")
	f.IntVar(&w.Classes, "sizes", w.Classes, "file sizes are uniform from 1 to `K` f")
	f.IntVar(&w.Delays, "delays", w.Delays, "connection times are uniform from 1 to `K` T")
	f.IntVar(&w.Start, "start", w.Start, "each node starts with `M` known hosts")
	f.BoolVar(&w.StartReachable, "near", w.StartReachable,
		"nodes start only with hosts that they reach within the timeout")
	f.Float64Var(&w.LinkChance, "link", w.LinkChance, "probability `P` that a file links to another host")
	f.Float64Var(&w.Timeout, "timeout", w.Timeout, "connection timeout in `T` in experiment 1")
	f.Float64Var(&w.LAN.Bandwidth, "lan-bandwidth", w.LAN.Bandwidth, "total bandwidth of the LAN in `F/T`")
	f.Float64Var(&w.WAN.Bandwidth, "wan-bandwidth", w.WAN.Bandwidth, "bandwidth of each WAN node in `F/T`")
	f.Float64Var(&w.LAN.Message, "lan-message", w.LAN.Message, "`T` for a message in the LAN")
	f.Float64Var(&w.WAN.Message, "wan-message", w.WAN.Message, "`T` for a message in the WAN: the average "+
		"connection time")
	f.Var(
		setting.Choice(&d.share, []string{"parts", "running"}),
		"share",
		"a LAN node has a fixed part of the bandwidth, or only "+
			"transferring nodes share it",
	)
	f.Var(
		setting.Choice(&d.order, []string{"host", "turns"}),
		"order",
		"a node finishes a host before the next, or hosts alternate "+
			"by file",
	)
	f.Var(
		setting.Choice(&d.decider, []string{"hub", "plain"}),
		"decider",
		"decision code in mode kumo: that of a crawl, "+
			"or the simplest form of its rules",
	)
	f.Float64Var(&w.Persist, "persist", w.Persist, "`T` until the control unit has an entry on disk, in mode kumo")
	f.IntVar(&w.Places, "places", w.Places, "fetch `K` files at once when links are to be saturated")
	f.IntSliceVar(&w.Nodes, "nodes", w.Nodes, "numbers of nodes for experiment 1, or for --scale, `N,N,...`")
	f.Float64SliceVar(&w.Timeouts, "timeouts", w.Timeouts, "timeouts for experiment 2, `T,T,...`")
	f.IntVar(&w.FewNodes, "few", w.FewNodes, "use `N` nodes in experiment 2")
	f.Lookup("timeouts").DefValue = "[3,4,5,6,7]"
	f.SortFlags = false // keeps related flags together
	d.scaleFlags(cmd)
}

// maxDSpiderNodes is the maximum for which the paper's model makes sense.
const maxDSpiderNodes = 1000

func (d *dspider) check(cmd *cobra.Command) error {
	d.world.FixedShare, d.world.RoundRobin = d.share == "parts", d.order == "turns"
	if d.decider == "plain" {
		d.world.Decider = experiments.ByPlain
	}
	if err := checkScaling(cmd, d.scaling, "out", "seed", "nodes", "start", "scale"); err != nil {
		return err
	}
	if d.scaling {
		return d.checkScale(cmd)
	}
	w, most := &d.world, d.world.FewNodes
	for _, n := range w.Nodes {
		most = max(most, n)
		if n < 1 || n > maxDSpiderNodes {
			return usagef("--nodes: from 1 to %d nodes are possible, not %d", maxDSpiderNodes, n)
		}
	}
	if len(w.Nodes) == 0 || len(w.Timeouts) == 0 || w.FewNodes < 1 || w.FewNodes > maxDSpiderNodes {
		return usagef("--nodes and --timeouts need at least one value, and --few from 1 to %d", maxDSpiderNodes)
	}
	for _, t := range append([]float64{w.Timeout}, w.Timeouts...) {
		if !(t > 0 && t <= 1e6) {
			return usagef("a timeout of %gT is not possible", t)
		}
	}
	switch {
	case w.Runs < 1 || w.Runs > 1000 || w.Seed < 1:
		return usagef("--runs must be from 1 to 1000, and --seed 1 or more")
	case w.Start < 1 || w.Hosts < 2 || w.Hosts < w.Start*most:
		return usagef("--hosts is %d: %d nodes that start with %d each need as many, and at least 2", w.Hosts, most, w.Start)
	case w.Files < w.Hosts || w.Files > 5_000_000:
		return usagef("--files is %d: from one for each host, %d, to 5000000 are possible", w.Files, w.Hosts)
	case w.Classes < 1 || w.Classes > 255 || w.Delays < 1 || w.Delays > 255:
		return usagef("--sizes and --delays must be from 1 to 255")
	case !(w.LinkChance >= 0 && w.LinkChance <= 0.5):
		return usagef("--link is %g: a chance from 0 to 0.5 is possible", w.LinkChance)
	case !(w.LAN.Bandwidth > 0 && w.WAN.Bandwidth > 0 && w.LAN.Bandwidth < 1e9 && w.WAN.Bandwidth < 1e9):
		return usagef("--lan-bandwidth and --wan-bandwidth must be above 0")
	case !(w.LAN.Message >= 0 && w.WAN.Message >= 0 && w.Persist >= 0 && w.LAN.Message+w.WAN.Message+w.Persist < 1e6):
		return usagef("--lan-message, --wan-message and --persist must be 0 or more")
	case w.Places < 1 || w.Places > 1000:
		return usagef("--places must be from 1 to 1000")
	}
	return nil
}

func (d *dspider) run(cmd *cobra.Command) error {
	if d.scaling {
		return d.runScale(cmd)
	}
	points, err := withProgress(cmd, d.world.Run)
	if err != nil {
		return err
	}
	return report.DSpider(cmd.OutOrStdout(), &d.out.Folder, &d.world, points)
}

func withProgress[R any](cmd *cobra.Command, run func(context.Context, func(done, of int)) (R, error)) (R, error) {
	show, hide := runProgress()
	defer hide()
	return run(cmd.Context(), show)
}

// runProgress shows the progress of long work on a terminal, a few times per second, until hide is called.
func runProgress() (show func(done, of int), hide func()) {
	if !draws(os.Stderr) {
		return func(int, int) {}, func() {}
	}
	var shown time.Time
	show = func(done, of int) {
		if now := time.Now(); now.Sub(shown) > 200*time.Millisecond {
			shown = now
			fmt.Fprintf(os.Stderr, "\r%d of %d runs", done, of)
		}
	}
	return show, func() { fmt.Fprint(os.Stderr, "\r"+strings.Repeat(" ", 40)+"\r") }
}

func (d *dspider) scaleFlags(cmd *cobra.Command) {
	f, s := cmd.Flags(), &d.scale
	f.BoolVar(&d.scaling, "scale", false, "find the number of nodes at which the control unit is the bottleneck")
	durationVar(f, &s.Claim, "claim-cost", s.Claim, "with --scale, CPU `TIME` of the control unit per claim")
	durationVar(f, &s.Message, "message-cost", s.Message, "with --scale, CPU `TIME` of the control unit per message")
	durationVar(f, &s.Persist, "persist-time", s.Persist, "with --scale, `TIME` until an entry is in the log; the next "+
		"begins then")
	durationVar(f, &s.Delay, "delay", s.Delay, "with --scale, `TIME` to transfer a message")
	durationVar(f, &s.Gather, "gather", s.Gather, "with --scale, `TIME` that a node gathers requests for a batch")
	f.IntVar(&s.Shards, "shards", s.Shards, "with --scale, number `K` of control units when there are several")
	f.Float64Var(&s.Speed, "speed", s.Speed, "with --scale, a node fetches at most `P` pages per second")
	f.IntVar(&s.Pages, "pages", s.Pages, "with --scale, a host has `K` pages")
	f.Float64Var(&s.Found, "found", s.Found, "with --scale, a page links to `X` hosts whose owners its node does not "+
		"know, on average")
	f.IntVar(&s.Hosts, "web", s.Hosts, "with --scale, there are `N` hosts")
	durationVar(f, &s.WarmUp, "warm", s.WarmUp, "with --scale, do not measure for the first `TIME`")
	durationVar(f, &s.Time, "time", s.Time, "with --scale, then measure for `TIME`")
}

// Beyond these limits, a run would take minutes, or gigabytes.
const (
	mostScaleNodes = 20_000
	mostScaleHosts = 50_000_000
	mostScaleWants = 20_000_000
)

func (d *dspider) checkScale(cmd *cobra.Command) error {
	s := &d.scale
	if f := cmd.Flags(); f.Changed("nodes") {
		s.Nodes = d.world.Nodes
	}
	s.Start, s.Seed = d.world.Start, d.world.Seed
	most := 0
	for _, n := range s.Nodes {
		if most = max(most, n); n < 1 || n > mostScaleNodes {
			return usagef("--nodes: from 1 to %d nodes are possible, not %d", mostScaleNodes, n)
		}
	}
	rate := s.Speed * s.Found * float64(most) * (s.WarmUp + s.Time).Seconds()
	switch {
	case len(s.Nodes) == 0:
		return usagef("--nodes is empty: name numbers of nodes, such as 10,100,1000")
	case s.Seed < 1 || s.Start < 1:
		return usagef("--seed and --start must be 1 or more")
	case s.Claim < 0 || s.Message < 0 || s.Persist < 0 || s.Delay < 0 || s.Gather < 0 || s.WarmUp < 0 || s.Time <= 0:
		return usagef("times must not be below 0, and --time must be above")
	case s.Shards < 1 || s.Shards > 1000 || s.Pages < 1 || s.Pages > 1_000_000:
		return usagef("--shards must be from 1 to 1000, and --pages from 1 to 1000000")
	case !(s.Speed > 0 && s.Speed <= 1e6) || !(s.Found > 0 && s.Found <= 1):
		return usagef("--speed must be above 0 and at most 1000000, and --found above 0 and at most 1")
	case s.Hosts < 2*most*s.Start || s.Hosts > mostScaleHosts:
		return usagef("--web is %d: from twice what nodes begin with, %d, to %d hosts are possible", s.Hosts, 2*most*s.Start,
			mostScaleHosts)
	case rate > mostScaleWants:
		return usagef("these are %.0f claims: %d are possible; lower --time, --warm, --nodes, --speed or --found", rate,
			mostScaleWants)
	}
	return nil
}

func (d *dspider) runScale(cmd *cobra.Command) error {
	s := d.scale
	show, hide := runProgress()
	rows, err := s.Rows(cmd.Context(), show)
	var limits []experiments.Limit
	if err == nil {
		limits, err = s.Limits(cmd.Context())
	}
	hide()
	if err != nil {
		return err
	}
	return report.DSpiderScale(cmd.OutOrStdout(), &d.out.Folder, &s, rows, limits)
}
