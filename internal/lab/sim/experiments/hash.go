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

// A Hash compares ways to place hosts on equal nodes: Igloo's two-level hash with each of its second levels, and a ring
// without a table of slots.
type Hash struct {
	Slots int              // of the table
	Nodes []int            // for each a row a way; from 1 to Slots
	Hosts int              // that are placed; fewer than 5 a node say nothing about evenness
	Seed  uint64           // of the hashes
	Now   func() time.Time // the clock by which look-ups are measured; nil: they are not
}

// A HashRow is how one way places the hosts on a number of nodes. Shares are of all hosts, from 0 to 1.
type HashRow struct {
	Way       string
	Nodes     int
	MaxMean   float64 // the largest share, divided by the mean one
	Deviation float64 // the standard deviation of shares, divided by the mean one
	P         float64 // the chance that an even spread is as uneven as this
	Join      Moves   // when one more node comes, behind the others in the list; its zero value if there is no slot left
	Leave     Moves   // when the node in the middle of the list goes; its zero value if there is no other
	Cost      time.Duration
}

// Moves say what share of the hosts moves to another node.
type Moves struct {
	All         float64
	Minimum     float64 // what must move, so that shares can be even
	Unnecessary float64 // what moves between nodes that were there before and are there after
}

// Rows makes the table, ordered by nodes as they are given. Its only error is that of ctx.
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

// A hashing is a way to place hosts.
type hashing struct {
	name   string
	placer strategy.Placer
	slot   func([]strategy.Member, strategy.Node) int // that a node takes which joins
}

// noSlot leaves all hosts to the second level.
func noSlot([]strategy.Member, strategy.Node) int { return -1 }

// join is a list with one more node, whose name is the last.
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

// evenness tells of n nodes how even their shares are.
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
	slices.Sort(counts) // sums of floats depend on the order
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

// hostNames are made-up names that differ in a few digits, as real ones do.
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
