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

const simDSpiderLong = `Make the two experiments again by which DSpider (Wu, Ke, He and Liu, 2011) was judged, in virtual time.

  paper   its rules: fetch from a host at once, claim it then, drop it if it is another's
  kumo    the code of a crawl, --strategy hub: ask, probe, claim, and fetch what was granted

Nodes fetch one file after another, or so many at once that their links are saturated. Each of the paper's statements is judged by the
numbers: seen, or not seen. f is a unit of size and T one of time. docs/dspider.md has the measures, the results, and what is assumed.

--scale asks another question: at how many nodes is the control unit the limit?

The same flags give the same bytes, in tables and pictures alike.`

const simDSpiderExample = `  kumo sim dspider                                  # the tables and what is seen, in about a minute
  kumo sim dspider --out dspider                    # and CSV, and what bench/plot draws as PNG and SVG
  kumo sim dspider --share running                  # a LAN's bandwidth is that of those who transfer just then
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
	d := dspider{world: experiments.Paper(), scale: experiments.ScaleOfPaper(), share: "parts", order: "host",
		decider: "hub"}
	cmd := &cobra.Command{Use: "dspider", Short: "Make DSpider's experiments again", Long: simDSpiderLong,
		Example: simDSpiderExample, Args: cobra.NoArgs}
	d.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d.world.OwnPart, d.world.Turns = d.share == "parts", d.order == "turns"
		if d.decider == "plain" {
			d.world.Decider = experiments.ByPlain
		}
		if err := d.check(cmd); err != nil {
			return err
		}
		if err := d.out.Prepare(); err != nil {
			return err
		}
		if d.scaling {
			return d.runScale(cmd)
		}
		return d.run(cmd)
	}
	return d.out.keeps(cmd)
}

func (d *dspider) flags(cmd *cobra.Command) {
	f, w := cmd.Flags(), &d.world
	d.out.bind(f, "tables as CSV, pictures as SVG, and as JSON, which go run -C bench/plot . DIR draws,")
	f.IntVar(&w.Runs, "runs", w.Runs, "make each run with `K` seeds; tables have mean and standard deviation")
	f.Uint64Var(&w.Seed, "seed", w.Seed, "the first seed's `NUMBER`")
	f.IntVar(&w.Files, "files", w.Files, "make a web of `K` files")
	f.IntVar(&w.Hosts, "hosts", w.Hosts, "put them on `N` hosts, evenly")
	f.IntVar(&w.Classes, "sizes", w.Classes, "a file has 1 to `K` f, all as likely")
	f.IntVar(&w.Delays, "delays", w.Delays, "a connection takes 1 to `K` T, all as likely")
	f.IntVar(&w.Start, "start", w.Start, "each node knows `M` hosts at the beginning")
	f.BoolVar(&w.Near, "near", w.Near, "nodes begin only with hosts that they reach within the timeout")
	f.Float64Var(&w.Link, "link", w.Link, "the chance `P` that a file names another host")
	f.Float64Var(&w.Timeout, "timeout", w.Timeout, "`T` that a connection may take in experiment 1")
	f.Float64Var(&w.LAN.Bandwidth, "lan-bandwidth", w.LAN.Bandwidth, "`F/T` of all nodes of the LAN together")
	f.Float64Var(&w.WAN.Bandwidth, "wan-bandwidth", w.WAN.Bandwidth, "`F/T` of each node of the WAN")
	f.Float64Var(&w.LAN.Message, "lan-message", w.LAN.Message, "`T` that a message takes in the LAN")
	f.Float64Var(&w.WAN.Message, "wan-message", w.WAN.Message, "`T` that a message takes in the WAN: what a connection "+
		"takes on average")
	f.Var(setting.Choice(&d.share, []string{"parts", "running"}), "share", "a LAN node has its part of the bandwidth, or those "+
		"that transfer share it")
	f.Var(setting.Choice(&d.order, []string{"host", "turns"}), "order", "a node finishes a host before the next, or hosts take "+
		"turns by file")
	f.Var(setting.Choice(&d.decider, []string{"hub", "plain"}), "decider", "what decides in kumo's mode: the code of a crawl, "+
		"or the plainest form of its rules")
	f.Float64Var(&w.Persist, "persist", w.Persist, "`T` until kumo's control unit has an entry on disk")
	f.IntVar(&w.Places, "places", w.Places, "fetch `K` files at once where links are to be saturated")
	f.IntSliceVar(&w.Nodes, "nodes", w.Nodes, "nodes of experiment 1, or of --scale, `N,N,...`")
	f.Float64SliceVar(&w.Timeouts, "timeouts", w.Timeouts, "timeouts of experiment 2, `T,T,...`")
	f.IntVar(&w.Few, "few", w.Few, "`N` nodes in experiment 2")
	f.Lookup("timeouts").DefValue = "[3,4,5,6,7]"
	f.SortFlags = false // the order says what belongs together
	d.scaleFlags(cmd)
}

// mostDSpiderNodes is beyond what the paper's world makes sense with.
const mostDSpiderNodes = 1000

func (d *dspider) check(cmd *cobra.Command) error {
	if err := d.checkTogether(cmd); err != nil {
		return err
	}
	if d.scaling {
		return d.checkScale(cmd)
	}
	w, most := &d.world, d.world.Few
	for _, n := range w.Nodes {
		most = max(most, n)
		if n < 1 || n > mostDSpiderNodes {
			return usagef("--nodes: from 1 to %d nodes are possible, not %d", mostDSpiderNodes, n)
		}
	}
	if len(w.Nodes) == 0 || len(w.Timeouts) == 0 || w.Few < 1 || w.Few > mostDSpiderNodes {
		return usagef("--nodes and --timeouts need at least one value, and --few from 1 to %d", mostDSpiderNodes)
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
		return usagef("--hosts is %d: %d nodes that begin with %d each need as many, and at least 2", w.Hosts, most, w.Start)
	case w.Files < w.Hosts || w.Files > 5_000_000:
		return usagef("--files is %d: from one for each host, %d, to 5000000 are possible", w.Files, w.Hosts)
	case w.Classes < 1 || w.Classes > 255 || w.Delays < 1 || w.Delays > 255:
		return usagef("--sizes and --delays must be from 1 to 255")
	case !(w.Link >= 0 && w.Link <= 0.5):
		return usagef("--link is %g: a chance from 0 to 0.5 is possible", w.Link)
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
	points, err := showing(cmd, d.world.Run)
	if err != nil {
		return err
	}
	return report.DSpider(cmd.OutOrStdout(), &d.out.Folder, &d.world, points)
}

// showing runs an experiment, and shows how far it is.
func showing[R any](cmd *cobra.Command, run func(context.Context, func(done, of int)) (R, error)) (R, error) {
	show, hide := showRuns()
	defer hide()
	return run(cmd.Context(), show)
}

// showRuns shows on a terminal how far long work is, a few times a second, until it is hidden.
func showRuns() (show func(done, of int), hide func()) {
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
