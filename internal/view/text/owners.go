package text

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"kumo/internal/app/inspect"
	"kumo/internal/cluster/strategy"
)

// OwnersJSON writes one object per line: first nodes, then hosts.
func OwnersJSON(w io.Writer, all *inspect.Owners) error {
	for i := range all.By {
		if err := JSON(w, &all.By[i]); err != nil {
			return err
		}
	}
	for i := range all.Hosts {
		if err := JSON(w, &all.Hosts[i]); err != nil {
			return err
		}
	}
	return nil
}

// Owners prints how many hosts each node owns, and the owners of hosts.
func Owners(w io.Writer, all *inspect.Owners) error {
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

// ownerName returns a node's name, or the identity of a node that left, because another node may have its name.
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
	return Time(o.Since)
}

// stateLine describes the state of a host at its owner.
func stateLine(o *inspect.Owned) string {
	switch {
	case o.State == inspect.HostHashed && len(o.Backups) > 0:
		return "by its hash; its URLs are backed up by " + backupNames(o)
	case o.State == inspect.HostHashed:
		return "by its hash"
	case o.State == inspect.HostPromised && o.Moved:
		return "being moved there for load: its node had more work"
	case o.State == inspect.HostPromised:
		return "being moved there from its previous node"
	case o.State == inspect.HostParked && o.Rounds == 0:
		return "parked: received from another node, and being tried"
	case o.State == inspect.HostParked:
		return fmt.Sprintf("parked: no node reaches it, tried %s by all%s", times(o.Rounds), retryOf(o))
	case o.Rounds > 0:
		return fmt.Sprintf("left with its owner: no node has reached it, tried %s by all", times(o.Rounds))
	case o.Moved && o.State == inspect.HostGiven:
		return "taken from a node that would have finished later"
	case o.Moved:
		return "reached; moved there for load, from a node with more work"
	}
	return string(o.State)
}

// backupNames returns the nodes that back up a host's URLs. Nodes with the same name are listed by identity.
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
		words += "; again at " + Time(o.Again)
	}
	return words
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// OwnerNotes returns notes on what the tables of Owners omit.
func OwnerNotes(all *inspect.Owners) (notes []string) {
	if all.More > 0 {
		notes = append(notes, fmt.Sprintf("%d more hosts are not listed: --limit 0 lists all, and a domain only "+
			"those in it", all.More))
	}
	if len(all.By)+len(all.Hosts)+len(all.Missing) == 0 {
		notes = append(notes, "no host has an owner yet")
	}
	for _, name := range all.Missing {
		notes = append(notes, fmt.Sprintf("%s has no owner yet: no node has found a link to it, or the nodes that "+
			"can reach it are being determined", name))
	}
	if all.Moving {
		notes = append(notes, "the membership is changing, and hosts with it")
	}
	return notes
}
