// Package experiments reproduces the tables of the papers that kumo's strategies come from, using kumo's own code. The
// files of an experiment share a prefix (balance, dspider, hash, mesh, rank); outcome.go has tables and pictures.
package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/shard"
)

// A Hash compares ways to assign hosts to equal nodes: Igloo's two-level hash with each of its second levels, and a
// ring without a slot table.
type Hash struct {
	Slots int              // of the table
	Nodes []int            // numbers of nodes, from 1 to Slots; each gives one row per way
	Hosts int              // number of hosts; fewer than 5 per node say nothing about evenness
	Seed  uint64           // of the hashes
	Now   func() time.Time // clock for measuring look-ups; nil: not measured
}

// A HashRow is the result of one way for a number of nodes. Shares are of all hosts, from 0 to 1.
type HashRow struct {
	Way       string
	Nodes     int
	MaxMean   float64 // largest share divided by the mean
	Deviation float64 // standard deviation of the shares divided by the mean
	P         float64 // probability that a random assignment is at least as uneven
	Join      Moves   // when a node is added at the end of the list; zero if no slot is left
	Leave     Moves   // when the node in the middle of the list leaves; zero if it is the only one
	Cost      time.Duration
}

// Moves describe which shares of the hosts move to another node.
type Moves struct {
	All         float64
	Minimum     float64 // necessary for even shares
	Unnecessary float64 // moved between nodes that are in both lists
}

// Rows returns the results in the order of Nodes. The only error is that of ctx.
func (h Hash) Rows(ctx context.Context) (rows []HashRow, err error) {
	hosts := hostNames(h.Hosts)
	for _, n := range h.Nodes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, second := range []shard.Second{shard.Paper, shard.Rendezvous, shard.Jump, shard.Ring} {
			cfg := shard.Config{Slots: h.Slots, Second: second, Seed: h.Seed}
			way := hashing{name: second.String(), placer: shard.New(cfg), slot: cfg.FreeSlot}
			rows = append(rows, h.row(way, n, hosts))
		}
		alone := hashing{"ring alone", shard.New(shard.Config{Slots: h.Slots, Second: shard.Ring, Seed: h.Seed}), noSlot}
		rows = append(rows, h.row(alone, n, hosts))
	}
	return rows, nil
}

// A hashing is a way to assign hosts.
type hashing struct {
	name   string
	placer strategy.Placer
	slot   func([]strategy.Member, strategy.Node) int // slot of a new node
}

// noSlot leaves all hosts to the second level.
func noSlot([]strategy.Member, strategy.Node) int { return -1 }

// join returns the list with one more node, whose name comes last.
func (w hashing) join(members []strategy.Member) []strategy.Member {
	node := strategy.Node(fmt.Sprintf("node%05d~1", len(members)))
	return append(slices.Clone(members), strategy.Member{Node: node, Slot: w.slot(members, node)})
}

func (h Hash) row(w hashing, n int, hosts []string) HashRow {
	var members []strategy.Member
	for range n {
		members = w.join(members)
	}
	view, begin := w.placer.Place(members), h.now()
	now := owners(view, hosts)
	row := HashRow{Way: w.name, Nodes: n, Cost: h.now().Sub(begin) / time.Duration(len(hosts))}
	row.MaxMean, row.Deviation, row.P = evenness(now, n)
	if n < h.Slots {
		more := w.join(members)
		row.Join = moves(now, owners(w.placer.Place(more), hosts), more[n].Node)
		row.Join.Minimum = 1 / float64(n+1)
	}
	if n > 1 {
		gone := members[n/2]
		less := slices.DeleteFunc(slices.Clone(members), func(m strategy.Member) bool { return m == gone })
		row.Leave = moves(now, owners(w.placer.Place(less), hosts), gone.Node)
		row.Leave.Minimum = 1 / float64(n)
	}
	return row
}

func (h Hash) now() time.Time {
	if h.Now == nil {
		return time.Time{}
	}
	return h.Now()
}

func owners(v strategy.View, hosts []string) []strategy.Node {
	all := make([]strategy.Node, len(hosts))
	for i, host := range hosts {
		all[i], _ = v.Owner(host)
	}
	return all
}

// evenness describes how even the shares of n nodes are.
func evenness(owners []strategy.Node, n int) (maxMean, deviation, p float64) {
	by := map[strategy.Node]int{}
	for _, o := range owners {
		by[o]++
	}
	counts := make([]int, 0, n)
	for _, count := range by {
		counts = append(counts, count)
	}
	counts = append(counts, make([]int, n-len(counts))...)
	slices.Sort(counts) // the sum of floats depends on their order
	mean, squares := float64(len(owners))/float64(n), 0.0
	for _, c := range counts {
		squares += (float64(c) - mean) * (float64(c) - mean)
	}
	return float64(counts[n-1]) / mean, math.Sqrt(squares/float64(n)) / mean, stats.UniformP(counts)
}

func moves(before, after []strategy.Node, changed strategy.Node) (m Moves) {
	all, inVain := 0, 0
	for i := range before {
		if before[i] != after[i] {
			all++
			if before[i] != changed && after[i] != changed {
				inVain++
			}
		}
	}
	n := float64(len(before))
	return Moves{All: float64(all) / n, Unnecessary: float64(inVain) / n}
}

// hostNames returns generated names that differ in a few digits, as real ones do.
func hostNames(n int) []string {
	all := make([]string, n)
	for i := range all {
		k := i / 4
		all[i] = [...]string{"www%d.example.com", "shop-%05d.example.org:8080", "user%d.blog.example.net",
			"h%04d.synth.test"}[i%4]
		all[i] = fmt.Sprintf(all[i], k)
	}
	return all
}
