package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/settings"
	"kumo/internal/cluster/strategy"
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
		err = writeOwners(s.out, all)
	} else {
		err = printOwners(s.out, all)
	}
	for _, note := range ownerNotes(all) {
		fmt.Fprintf(s.err, "kumo: %s\n", note)
	}
	return err
}

// writeOwners writes an object a line: the nodes', then the hosts'.
func writeOwners(w io.Writer, all *inspect.Owners) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range all.By {
		if err := enc.Encode(&all.By[i]); err != nil {
			return err
		}
	}
	for i := range all.Hosts {
		if err := enc.Encode(&all.Hosts[i]); err != nil {
			return err
		}
	}
	return nil
}

func printOwners(w io.Writer, all *inspect.Owners) error {
	if len(all.By) > 0 {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "hosts\tparked\t  owner")
		for i := range all.By {
			by := &all.By[i]
			fmt.Fprintf(t, "%d\t%d\t  %s\n", by.Hosts, by.Parked, ownerName(by.Owner, by.Node, by.Gone))
		}
		if err := t.Flush(); err != nil || len(all.Hosts) == 0 {
			return err
		}
		fmt.Fprintln(w)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(all.Hosts) > 0 {
		fmt.Fprintln(t, "owner\thost\tsince\tstate")
	}
	for i := range all.Hosts {
		o := &all.Hosts[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", ownerName(o.Owner, o.Node, o.Gone), o.Host, sinceOf(o), stateLine(o))
	}
	return t.Flush()
}

// ownerName is a node's name, or its identity if another one may have the name by now.
func ownerName(name, node string, gone bool) string {
	if gone {
		return node + " (gone)"
	}
	return name
}

func sinceOf(o *inspect.Owned) string {
	if o.Since.IsZero() {
		return "-"
	}
	return when(o.Since)
}

// stateLine says how a host stands with its owner.
func stateLine(o *inspect.Owned) string {
	switch {
	case o.State == inspect.HostHashed && len(o.Backups) > 0:
		return "by its hash; its URLs are remembered by " + backupNames(o)
	case o.State == inspect.HostHashed:
		return "by its hash"
	case o.State == inspect.HostPromised && o.Moved:
		return "on its way there for load: the node that had it has more to do"
	case o.State == inspect.HostPromised:
		return "on its way there from the node that had it"
	case o.State == inspect.HostParked && o.Rounds == 0:
		return "parked: it has come from another node, and is tried now"
	case o.State == inspect.HostParked:
		return fmt.Sprintf("parked: nobody reaches it, tried %s by all%s", times(o.Rounds), retryOf(o))
	case o.Rounds > 0:
		return fmt.Sprintf("left to its owner: nobody has reached it, tried %s by all", times(o.Rounds))
	case o.Moved && o.State == inspect.HostGiven:
		return "taken from a node that would have been done later"
	case o.Moved:
		return "reached; moved there for load, from a node that had more to do"
	}
	return string(o.State)
}

// backupNames are those of the nodes that remember a host's URLs; nodes of the same name by their identity.
func backupNames(o *inspect.Owned) string {
	names := make([]string, len(o.Backups))
	for i, b := range o.Backups {
		names[i] = strategy.Node(b).Name()
	}
	for i, b := range o.Backups {
		if slices.Index(names, names[i]) != i {
			names[i] = b
		}
	}
	return strings.Join(names, ", ")
}

func retryOf(o *inspect.Owned) (words string) {
	if len(o.Failed) > 0 {
		words = ", last by " + strings.Join(o.Failed, " ")
	}
	if !o.Again.IsZero() {
		words += "; again at " + when(o.Again)
	}
	return words
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// ownerNotes are what is worth knowing beside the list.
func ownerNotes(all *inspect.Owners) (notes []string) {
	if all.More > 0 {
		notes = append(notes, fmt.Sprintf("%d more hosts are not listed: --limit 0 lists all, and a domain named only "+
			"those in it", all.More))
	}
	if len(all.By)+len(all.Hosts)+len(all.Missing) == 0 {
		notes = append(notes, "no host is anybody's yet")
	}
	for _, name := range all.Missing {
		notes = append(notes, fmt.Sprintf("%s is nobody's yet: no node has met a link to it, or it is just being found "+
			"out who reaches it", name))
	}
	if all.Moving {
		notes = append(notes, "members change just now, and hosts with them")
	}
	return notes
}
