package shard_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/shard"
	"kumo/internal/lab/synthweb"
)

var allSeconds = []shard.Second{shard.Rendezvous, shard.Jump, shard.Paper, shard.Ring}

// hostLists returns realistic names: they differ in a few digits, at the front, in the middle or at the end.
func hostLists(n int) map[string][]string {
	web := synthweb.New(synthweb.Clean(1, n, n))
	lists := map[string][]string{}
	for i := range n {
		lists["www"] = append(lists["www"], fmt.Sprintf("www%d.example.com", i))
		lists["sites"] = append(lists["sites"], fmt.Sprintf("site-%05d.example.org:8080", i))
		lists["users"] = append(lists["users"], fmt.Sprintf("%s.blog.example.net",
			strings.Repeat(string(rune('a'+i%26)), 1+i/26)))
		lists["addresses"] = append(lists["addresses"], fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
		lists["synthweb"] = append(lists["synthweb"], web.Host(i))
	}
	return lists
}

func node(i int) strategy.Node { return strategy.Node(fmt.Sprintf("node%d~1", i)) }

// inSlots returns members with the given slots.
func inSlots(slots ...int) []strategy.Member {
	members := make([]strategy.Member, len(slots))
	for i, slot := range slots {
		members[i] = strategy.Member{Node: node(i), Slot: slot}
	}
	return sorted(members)
}

func sorted(members []strategy.Member) []strategy.Member {
	slices.SortFunc(members, func(a, b strategy.Member) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return members
}

// joined returns n members that have joined one by one.
func joined(cfg shard.Config, n int) (members []strategy.Member) {
	for i := range n {
		members = append(members, strategy.Member{Node: node(i), Slot: cfg.FreeSlot(members, node(i))})
	}
	return sorted(members)
}

// shares counts the hosts of each member.
func shares(t *testing.T, v strategy.View, members []strategy.Member, hosts []string) []int {
	t.Helper()
	index := map[strategy.Node]int{}
	for i, m := range members {
		index[m.Node] = i
	}
	counts := make([]int, len(members))
	for _, h := range hosts {
		owner, state := v.Owner(h)
		i, known := index[owner]
		if !known || state != strategy.Owned {
			t.Fatalf("%s is %q's, state %v: not one of %v", h, owner, state, members)
		}
		counts[i]++
	}
	return counts
}

func random(t *testing.T, seed uint64) *rand.Rand {
	t.Helper()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
