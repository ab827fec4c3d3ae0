package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/lab/sim/experiments"
	"kumo/internal/lab/sim/report"
)

const simHashLong = `Compare methods of placing hosts on equal nodes.

Igloo (Ye, Yu and Ma, 2002) has a table of M slots, --slots, the maximum number of nodes. A first
hash of a host selects a slot; if a node has the slot, it owns the host. The hosts of empty slots are
distributed over all nodes by a second level:

  paper        a second hash mod N, the number of nodes, as in the paper
  rendezvous   the node with the greatest hash together with the host: used in a crawl
  jump         jump hash, by the node's number in the list
  ring         the next of 128 points of each node on a circle
  ring alone   the same without a table: the usual consistent hashing

Each method gets the same synthetic hosts, whose names differ in a few digits. For each method and
number of nodes the table has:

  max/mean     the largest share of the hosts, divided by the mean
  deviation    the standard deviation of shares, in percent of the mean
  p            the probability that an even distribution is as uneven as this, by a chi-square test;
               below 0.001 it is not even
  join         the fraction of hosts that move when a node joins at the end of the list
  leave        the fraction that moves when the node in the middle of the list leaves
  least        the fraction that must move for even shares
  in vain      the fraction that moves between nodes present before and after
  ns           the time of a lookup, with --cost

The table is the same for the same flags, except for ns.`

const simHashExample = `  kumo sim hash           # M = 16; from 4 to 5 nodes the paper's form moves 61 %
  kumo sim hash --slots 1024 --nodes 10,100,1000 --cost
  kumo sim hash --slots 8 --nodes 2,4,6,8 --csv hash.csv`

func simHash() *cobra.Command {
	h := experiments.Hash{}
	var file string
	var cost bool
	out := &simFolder{}
	cmd := &cobra.Command{Use: "hash", Short: "Compare methods of placing hosts on nodes", Long: simHashLong,
		Example: simHashExample, Args: cobra.NoArgs}
	f := cmd.Flags()
	f.IntVar(&h.Slots, "slots", 16, "use a table of `M` slots, the largest number of nodes")
	f.IntSliceVar(&h.Nodes, "nodes", []int{2, 3, 4, 5, 8, 12, 16}, "compare for these numbers of nodes, `N,N,...`, "+
		"none above M")
	f.IntVar(&h.Hosts, "hosts", 100_000, "place `K` hosts")
	f.Uint64Var(&h.Seed, "seed", 1, "`NUMBER` that selects the hash functions")
	f.StringVar(&file, "csv", "", "also write the table to `FILE`, with all digits, and shares from 0 to 1")
	out.bind(f, "the table as CSV")
	f.BoolVar(&cost, "cost", false, "measure the time of a lookup")
	check := func(*cobra.Command) error {
		if !f.Changed("nodes") {
			h.Nodes = slices.DeleteFunc(h.Nodes, func(n int) bool { return n > max(h.Slots, 2) })
		}
		return checkHash(&h)
	}
	return out.runs(cmd, check, func(cmd *cobra.Command) error {
		if cost {
			h.Now = time.Now
		}
		rows, err := h.Rows(cmd.Context())
		if err != nil {
			return err
		}
		if err := report.Hash(cmd.OutOrStdout(), &out.Folder, &h, rows); err != nil || file == "" {
			return err
		}
		var b bytes.Buffer
		table := report.HashTable(rows)
		if err = table.Write(&b); err == nil {
			err = os.WriteFile(file, b.Bytes(), 0o666)
		}
		if err != nil {
			return fmt.Errorf("--csv: %w", err)
		}
		return nil
	})
}

// Beyond these limits, the table would take minutes, or gigabytes.
const (
	mostSimSlots = 10_000
	mostSimHosts = 10_000_000
)

func checkHash(h *experiments.Hash) error {
	if h.Slots < 1 || h.Slots > mostSimSlots {
		return usagef("--slots is %d: from 1 to %d are possible", h.Slots, mostSimSlots)
	}
	if len(h.Nodes) == 0 {
		return usagef("--nodes is empty: name numbers of nodes, such as 4,5,8")
	}
	most := 0
	for _, n := range h.Nodes {
		if n < 1 || n > h.Slots {
			return usagef("--nodes: %d nodes are not possible with %d slots: each needs one", n, h.Slots)
		}
		most = max(most, n)
	}
	if h.Hosts < 5*most || h.Hosts > mostSimHosts {
		return usagef("--hosts is %d: from 5 for each node, %d, to %d are possible", h.Hosts, 5*most, mostSimHosts)
	}
	return nil
}
