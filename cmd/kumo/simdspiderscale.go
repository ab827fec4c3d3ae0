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

	"kumo/internal/lab/sim/experiments"
)

func (d *dspider) scaleFlags(cmd *cobra.Command) {
	f, s := cmd.Flags(), &d.scale
	f.BoolVar(&d.scaling, "scale", false, "look at how many nodes the control unit is the limit instead")
	durationVar(f, &s.Claim, "claim-cost", s.Claim, "with --scale, `TIME` of the control unit's processor for a claim")
	durationVar(f, &s.Message, "message-cost", s.Message, "with --scale, `TIME` of it for a message that comes or goes")
	durationVar(f, &s.Persist, "persist-time", s.Persist, "with --scale, `TIME` until an entry is in the log; the next "+
		"begins then")
	durationVar(f, &s.Delay, "delay", s.Delay, "with --scale, `TIME` that a message is on its way")
	durationVar(f, &s.Gather, "gather", s.Gather, "with --scale, `TIME` that a node waits for more to ask, with batches")
	f.IntVar(&s.Shards, "shards", s.Shards, "with --scale, have `K` control units where there are several")
	f.Float64Var(&s.Speed, "speed", s.Speed, "with --scale, a node fetches `P` pages a second, if it has them")
	f.IntVar(&s.Pages, "pages", s.Pages, "with --scale, a host has `K` pages")
	f.Float64Var(&s.Found, "found", s.Found, "with --scale, a page names `X` hosts whose owners its node does not "+
		"know, on average")
	f.IntVar(&s.Hosts, "web", s.Hosts, "with --scale, there are `N` hosts")
	durationVar(f, &s.Warm, "warm", s.Warm, "with --scale, take no figures for a `TIME`")
	durationVar(f, &s.Time, "time", s.Time, "with --scale, then take them for a `TIME`")
}

// checkTogether refuses flags that say nothing of what is asked for.
func (d *dspider) checkTogether(cmd *cobra.Command) (err error) {
	both := []string{"out", "seed", "nodes", "start", "scale"}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if of := strings.HasPrefix(f.Usage, "with --scale, "); f.Changed && of != d.scaling &&
			!slices.Contains(both, f.Name) {
			err = usagef("--%s says nothing with --scale", f.Name)
			if of {
				err = usagef("--%s says something only with --scale", f.Name)
			}
		}
	})
	return err
}

// Beyond these a run would take minutes, or gigabytes.
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
	rate := s.Speed * s.Found * float64(most) * (s.Warm + s.Time).Seconds()
	switch {
	case len(s.Nodes) == 0:
		return usagef("--nodes is empty: name numbers of nodes, such as 10,100,1000")
	case s.Seed < 1 || s.Start < 1:
		return usagef("--seed and --start must be 1 or more")
	case s.Claim < 0 || s.Message < 0 || s.Persist < 0 || s.Delay < 0 || s.Gather < 0 || s.Warm < 0 || s.Time <= 0:
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
	show, hide := showRuns()
	rows, err := s.Rows(cmd.Context(), show)
	var limits []experiments.Limit
	if err == nil {
		limits, err = s.Limits(cmd.Context())
	}
	hide()
	if err != nil {
		return err
	}
	if err := printScale(cmd.OutOrStdout(), &s, rows, limits); err != nil {
		return err
	}
	if err := d.table("scale", func(w io.Writer) error { return experiments.WriteScale(w, rows) }); err != nil {
		return err
	}
	return d.picture("scale", "The control unit, by the number of nodes", experiments.ScalePicture(rows, s.Shards))
}

func printScale(w io.Writer, s *experiments.Scale, rows []experiments.ScaleRow, limits []experiments.Limit) error {
	fmt.Fprintf(w, "A claim costs %v, a message %v, an entry of the log %v; a node fetches %g pages a second, of which "+
		"%g name a host of %d pages\n\n",
		s.Claim, s.Message, s.Persist, s.Speed, s.Found, s.Pages)
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "nodes\tvariant\toffered/s\tanswered/s\tmedian\tp99\tprocessor\tlog\tcapacity\t")
	for i, r := range rows {
		if i > 0 && rows[i-1].Nodes != r.Nodes {
			fmt.Fprintln(tab, strings.Repeat("\t", 9)) // a line without cells would end the columns
		}
		fmt.Fprintf(tab, "%d\t%v\t%.1f\t%.1f\t%v\t%v\t%s\t%s\t%s\t\n", r.Nodes, r.Variant, r.Offered, r.Answered,
			short(r.Median), short(r.P99),
			percent(r.Processor), percent(r.Log), percent(r.Capacity))
	}
	if err := flush(w, tab, &b); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, l := range limits {
		fmt.Fprintln(w, limitText(l, rows))
	}
	return nil
}

// limitText says where a variant saturates, and from where on nodes fetch less for it.
func limitText(l experiments.Limit, rows []experiments.ScaleRow) string {
	text := fmt.Sprintf("%v: more is asked than can be answered from about %d nodes on", l.Variant, l.Nodes)
	if l.Beyond {
		text = fmt.Sprintf("%v: all is answered with up to %d nodes, the most that were tried", l.Variant, l.Nodes)
	}
	for _, r := range rows {
		if r.Variant == l.Variant && r.Capacity < 0.95 {
			return text + fmt.Sprintf("; with %d nodes these fetch %s of what they could", r.Nodes, percent(r.Capacity))
		}
	}
	return text + "; no number of nodes in the table fetches less for it"
}

// short is a time with as many digits as mean something.
func short(d time.Duration) time.Duration {
	unit := time.Microsecond
	for d > 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}
