package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/lab/sim/experiments"
	"kumo/internal/lab/sim/report"
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
	return report.DSpiderScale(cmd.OutOrStdout(), &d.out.Folder, &s, rows, limits)
}
