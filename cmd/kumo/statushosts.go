package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"kumo/internal/app/admin"
	"kumo/internal/app/job"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/settings"
	"kumo/internal/view/text"
)

// hostsView is kumo status --hosts.
type hostsView struct {
	on     bool
	parked bool
	limit  int
}

func (v *hostsView) bind(f *pflag.FlagSet) {
	f.BoolVar(&v.on, "hosts", false, "say whose hosts are: of those named, with all that are in a domain named, or of "+
		"all (strategy hub)")
	f.BoolVar(&v.parked, "parked", false, "with --hosts: only those that nobody reaches")
	f.IntVar(&v.limit, "limit", 1000, "with --hosts: list `N` at most; 0: all, of which each takes some 200 bytes of "+
		"memory here")
}

// check says what does not go together.
func (v *hostsView) check(given *pflag.FlagSet, args []string, watch bool) error {
	switch {
	case v.on && watch:
		return usagef("--hosts is answered once: leave --watch out")
	case v.limit < 0:
		return usagef("--limit is %d: name how many hosts to list at most, or 0 for all", v.limit)
	case v.on:
		return nil
	case len(args) > 0:
		return usagef("%q: whose a host is says kumo status --hosts %s", args[0], strings.Join(args, " "))
	case given.Changed("parked"), given.Changed("limit"):
		return usagef("--parked and --limit speak of --hosts")
	}
	return nil
}

// show asks whose hosts are, and prints it.
func (v *hostsView) show(ctx context.Context, s *statusView, control admin.Client, c *clusterFlags,
	args []string) error {
	q := admin.HostQuery{Parked: v.parked, Limit: v.limit, Patience: c.wait}
	for _, a := range args {
		host, err := hostArg(a)
		if err != nil {
			return err
		}
		q.Names = append(q.Names, host)
	}
	r, err := control.Record(ctx)
	if err != nil {
		return cluster.Advise(err)
	}
	q.Slices = job.SlicesOf(settings.FromMap(r.Settings))
	all, err := control.Owners(ctx, q)
	if err != nil {
		return cluster.Advise(err)
	}
	if s.json {
		err = text.OwnersJSON(s.out, all)
	} else {
		err = text.Owners(s.out, all)
	}
	for _, note := range text.OwnerNotes(all) {
		fmt.Fprintf(s.err, "kumo: %s\n", note)
	}
	return err
}
