package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCluster runs five nodes, each on a host of its own, that crawl a synthetic web. Meanwhile nodes are killed,
// paused, cut off and replaced, leave and join, and lose messages. It runs KUMO_TEST_ROUNDS times (none unless it is
// set), with seeds from KUMO_TEST_SEED on. In three rounds with consecutive seeds, the first divisible by three, each
// kind of fault occurs at least once. No page may be missing, one node at a time contacts a host, and the records of
// all nodes match the server's log. KUMO_TEST_STRATEGY is the strategy, KUMO_TEST_KEEP a folder for the nodes' files.
// With mesh no node runs a server, so each fault may hit any node. While the nodes do not all see each other, two may
// contact the same host.
func TestCluster(t *testing.T) {
	rounds := number("KUMO_TEST_ROUNDS", 0)
	if rounds == 0 {
		t.Skip("SKIPPED: it takes a minute a round; set KUMO_TEST_ROUNDS to run it")
	}
	seed := number("KUMO_TEST_SEED", rand.Uint64N(1<<40)*3)
	t.Logf("KUMO_TEST_SEED=%d, strategy %s", seed, strategyOf("KUMO_TEST_STRATEGY", "shard"))
	sum := tallies{}
	for n := range rounds {
		t.Run(fmt.Sprint(seed+n), func(t *testing.T) {
			r := newRound(t, seed+n)
			r.crawl()
			r.judge(sum)
		})
	}
	t.Logf("%d rounds from seed %d:\n%s", rounds, seed, sum)
}

// A kind is a kind of fault, of a node or of the cluster.
type kind string

const (
	kill      kind = "kill"      // SIGKILL; it is restarted before its lease expires, or after
	pause     kind = "pause"     // SIGSTOP for longer than a lease
	partition kind = "partition" // it reaches the web, but no other node
	join      kind = "join"      // a new node starts
	leave     kind = "leave"     // SIGINT
	replace   kind = "replace"   // SIGKILL, and its disk is lost; a new node of that name starts
	loss      kind = "loss"      // many packets between all nodes are lost
	control   kind = "control"   // SIGKILL of the control unit, one of the servers; nothing if the strategy has none
)

var kinds = []kind{kill, pause, partition, join, leave, replace, loss, control}

// A fault is one fault at a time.
type fault struct {
	kind    kind
	node    int           // index of the node; -1: none, or not known yet
	with    int           // index of another node that is cut off together with it, or -1
	after   time.Duration // from the start of the crawl
	lasts   time.Duration
	began   time.Time // zero if the crawl was over before
	back    time.Time // when it ended
	clients []string  // addresses of the nodes that lose their membership by it, or may
}

const (
	clusterNodes   = 5
	clusterServers = 3 // the first nodes run servers, if any; two must be up
)

// serversWith returns how many nodes run servers.
func serversWith(strategy string) int {
	if strategy == "mesh" {
		return 0
	}
	return clusterServers
}

// planFaults returns the faults of the round with a seed, with a number of nodes that run servers. At most one fault
// hits a server.
func planFaults(seed uint64, servers int) (faults []*fault) {
	kinds := kinds
	if servers == 0 {
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return k == control })
	}
	deck := rand.New(rand.NewPCG(seed/3, 1)).Perm(len(kinds))
	dice := rand.New(rand.NewPCG(seed, 2))
	var todo []kind
	for i := int(seed % 3); i < len(deck); i += 3 {
		todo = append(todo, kinds[deck[i]])
	}
	if extra := kinds[dice.IntN(len(kinds))]; len(todo) < 3 && dice.IntN(4) == 0 && !slices.Contains(todo, extra) {
		todo = append(todo, extra)
	}
	at := seconds(dice, 4, 10)
	for _, k := range todo {
		faults = append(faults, &fault{kind: k, node: -1, with: -1, after: at, lasts: lengthOf(dice, k)})
		at += seconds(dice, 3, 20)
	}
	cast(faults, dice, servers)
	// every node has had a fault
	return slices.DeleteFunc(faults, func(f *fault) bool { return f.node < 0 && f.kind != loss && f.kind != control })
}

// cast chooses the nodes. The leaving node is chosen first: it cannot run a server.
func cast(faults []*fault, dice *rand.Rand, servers int) {
	victims, joined := dice.Perm(clusterNodes), 0
	served := slices.ContainsFunc(faults, func(f *fault) bool { return f.kind == control })
	inTurn := slices.Clone(faults)
	slices.SortStableFunc(inTurn, func(a, b *fault) int { return cmp.Compare(turn(a), turn(b)) })
	for _, f := range inTurn {
		switch f.kind {
		case loss, control:
			continue
		case join:
			f.node = clusterNodes + joined
			joined++
			continue
		}
		i := slices.IndexFunc(victims, func(v int) bool { return v >= servers || !served && f.kind != leave })
		if i < 0 {
			continue
		}
		f.node = victims[i]
		served = served || f.node < servers
		victims = slices.Delete(victims, i, i+1)
		// cut off two together: without servers, or with two of them, so that this side continues
		if f.kind == partition && dice.IntN(2) == 0 {
			f.with = slices.IndexFunc(victims, func(v int) bool { return (v < servers) == (f.node < servers) })
			if f.with >= 0 {
				f.with = victims[f.with]
			}
		}
	}
}

func turn(f *fault) int {
	if f.kind == leave {
		return 0
	}
	return 1
}

// lengthOf returns the duration of a fault. A lease lasts 14 seconds, and expires in the meantime or not.
func lengthOf(dice *rand.Rand, k kind) time.Duration {
	switch k {
	case pause:
		return 30 * time.Second
	case replace:
		return seconds(dice, 0, 3)
	case loss:
		return manyLostFor
	case partition, kill, control:
		if dice.IntN(2) == 0 {
			return seconds(dice, 1, 8)
		}
		return seconds(dice, 18, 24)
	}
	return 0
}

func seconds(dice *rand.Rand, least, most int) time.Duration {
	return time.Duration(least)*time.Second + time.Duration(dice.IntN((most-least)*1000))*time.Millisecond
}

func (f *fault) String() string {
	s := string(f.kind)
	if f.node >= 0 {
		s += fmt.Sprintf(" of n%d", f.node+1)
	}
	if f.with >= 0 {
		s += fmt.Sprintf(" and n%d", f.with+1)
	}
	if f.began.IsZero() {
		return s + " not carried out"
	}
	s += fmt.Sprintf(" at %v", f.after.Round(100*time.Millisecond))
	if f.lasts > 0 {
		s += fmt.Sprintf(" for %v", f.back.Sub(f.began).Round(100*time.Millisecond))
	}
	return s
}

// tallies are the effects of faults, by kind.
type tallies map[kind]*tally

type tally struct {
	runs, lost, twice, slips, violations int
	stall                                time.Duration // the longest time without any request
	// the longest time until another node took over a host of the node
	taken time.Duration
}

func (t tallies) of(k kind) *tally {
	if t[k] == nil {
		t[k] = new(tally)
	}
	return t[k]
}

func (t tallies) String() string {
	var b strings.Builder
	row := func(cells ...any) { fmt.Fprintf(&b, "%-10s%6v%6v%12v%15v%15v%7v%12v\n", cells...) }
	row("fault", "runs", "lost", "duplicates", "longest stall", "host silent", "slips", "violations")
	for _, k := range append(slices.Clone(kinds), "") {
		if x := t[k]; x != nil {
			name := k
			if k == "" {
				name = "(none)"
			}
			row(name, x.runs, x.lost, x.twice, x.stall.Round(10*time.Millisecond), x.taken.Round(10*time.Millisecond), x.slips,
				x.violations)
		}
	}
	return b.String()
}
