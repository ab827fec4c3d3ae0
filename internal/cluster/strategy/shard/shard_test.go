package shard_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/shard"
)

// TestForEver fixes for each configuration the owners of hosts among seven nodes, then the nodes' slots. Placements are
// part of a crawl's state: a change would break existing crawls.
func TestForEver(t *testing.T) {
	hosts := []string{"example.com", "www.example.com", "example.co.uk:8080", "192.0.2.1", "[2001:db8::1]:81", ""}
	for _, c := range []struct {
		cfg  shard.Config
		want string
	}{
		{shard.Config{}, "2 1 0 0 2 3 slots 215 323 505 776 365 247 711"},
		{shard.Config{Seed: 1}, "3 5 1 4 6 4 slots 824 1006 981 386 977 24 648"},
		{shard.Config{Slots: 10}, "2 2 0 2 4 3 slots 9 3 4 8 5 6 0"},
		{shard.Config{Slots: 10, Second: shard.Jump}, "5 2 5 2 4 3 slots 9 3 4 8 5 6 0"},
		{shard.Config{Slots: 10, Second: shard.Paper}, "4 2 0 2 4 3 slots 9 3 4 8 5 6 0"},
		{shard.Config{Slots: 10, Second: shard.Ring}, "0 2 6 2 4 3 slots 9 3 4 8 5 6 0"},
		{shard.Config{Slots: 10, Key: shard.ByDomain}, "2 2 2 2 5 3 slots 9 3 4 8 5 6 0"},
	} {
		members, got := joined(c.cfg, 7), []string{}
		v := shard.New(c.cfg).Place(members)
		for _, h := range hosts {
			owner, _ := v.Owner(h)
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(string(owner), "node"), "~1"))
		}
		got = append(got, "slots")
		for _, m := range members {
			got = append(got, fmt.Sprint(m.Slot))
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.cfg, got, c.want)
		}
	}
}

// TestDomain: with ByDomain, hosts of one registered domain have the same owner, whatever their ports; with ByHost they
// do not.
func TestDomain(t *testing.T) {
	members := joined(shard.Config{}, 50)
	for key, together := range map[shard.Key]bool{shard.ByDomain: true, shard.ByHost: false} {
		v := shard.New(shard.Config{Key: key}).Place(members)
		for _, names := range [][]string{
			{"example.co.uk", "www.example.co.uk", "www.example.co.uk:8080",
				"a.rather.long.name.of.one.host.of.example.co.uk:81"},
			{"[2001:db8::1]", "[2001:db8::1]:80", "[2001:db8::1]:81", "[2001:db8::1]:82"},
		} {
			owners := map[strategy.Node]bool{}
			for _, h := range names {
				owner, _ := v.Owner(h)
				owners[owner] = true
			}
			if (len(owners) == 1) != together {
				t.Errorf("key %v: %v are of %d nodes", key, names, len(owners))
			}
		}
		a, _ := v.Owner("[2001:db8::1]")
		if b, _ := v.Owner("[2001:db8::2]"); a == b {
			t.Errorf("key %v: two addresses are both %s's", key, a)
		}
	}
}

// TestFreeSlot: members get different slots until all are taken, and a node gets the same slot again.
func TestFreeSlot(t *testing.T) {
	cfg := shard.Config{Slots: 20}
	members, firsts := joined(cfg, 20), map[int]bool{}
	taken := map[int]bool{}
	for i, m := range members {
		if m.Slot < 0 || m.Slot >= cfg.Slots || taken[m.Slot] {
			t.Fatalf("slots %v", members)
		}
		taken[m.Slot] = true
		firsts[cfg.FreeSlot(nil, node(i))] = true
	}
	if got := cfg.FreeSlot(members, "late~1"); got != -1 {
		t.Errorf("a node gets slot %d of a full table", got)
	}
	freed := append(members[:3:3], members[4:]...)
	if got := cfg.FreeSlot(freed, "late~1"); got != members[3].Slot {
		t.Errorf("the only free slot is %d, not %d", members[3].Slot, got)
	}
	if len(firsts) < 8 {
		t.Errorf("20 nodes wish for %d slots only", len(firsts))
	}
	if a, b := cfg.FreeSlot(nil, node(1)), (shard.Config{Slots: 20, Seed: 1}).FreeSlot(nil, node(1)); a == b {
		t.Errorf("the seed changes nothing: slot %d", a)
	}
}

// TestTwoInOneSlot: if two members have the same slot, which is not allowed, its hosts belong to the first one. The
// other gets its share of the rest, like a member without a slot.
func TestTwoInOneSlot(t *testing.T) {
	hosts := hostLists(20_000)["www"]
	for _, slots := range [][]int{{2, 2}, {2, -1}, {2, 8}} {
		members := inSlots(slots...)
		counts := shares(t, shard.New(shard.Config{Slots: 8}).Place(members), members, hosts)
		if got, want := float64(counts[0])/float64(len(hosts)), 1.0/8+7.0/16; math.Abs(got-want) > 0.015 {
			t.Errorf("slots %v: the first has %.3f of the hosts, want %.3f", slots, got, want)
		}
	}
}

// TestSteps: only lists of members count, and only the last one.
func TestSteps(t *testing.T) {
	s := shard.New(shard.Config{})
	if out := s.Step(time.Time{}, []strategy.Event{strategy.Fired{}, strategy.OwnersNeeded{Hosts: []string{"a"}}},
		nil); len(out) > 0 {
		t.Errorf("without a list: %v", out)
	}
	if _, state := s.View().Owner("a"); state != strategy.Unknown {
		t.Errorf("without a list: state %v", state)
	}
	out := s.Step(time.Time{}, []strategy.Event{strategy.Members{Epoch: 1, Members: inSlots(0, 1)},
		strategy.Members{Epoch: 2, Members: []strategy.Member{{Node: "x~1", Slot: 5}}}, strategy.Fired{}}, nil)
	if len(out) != 1 || out[0] != (strategy.ViewChanged{}) {
		t.Errorf("actions %v, want Changed once", out)
	}
	if owner, state := s.View().Owner("a"); owner != "x~1" || state != strategy.Owned {
		t.Errorf("a is %q's, state %v", owner, state)
	}
}

func TestNames(t *testing.T) {
	for _, second := range allSeconds {
		if got, err := shard.ParseSecond(second.String()); got != second || err != nil {
			t.Errorf("%v is read as %v, %v", second, got, err)
		}
	}
	if _, err := shard.ParseSecond("modulo"); err == nil || !strings.Contains(err.Error(), "rendezvous") {
		t.Errorf("an unknown name: %v", err)
	}
	for _, cfg := range []shard.Config{{Slots: -1}, {Second: 9}, {Key: 9}} {
		func() {
			defer func() { _ = recover() }()
			shard.New(cfg)
			t.Errorf("%+v is taken", cfg)
		}()
	}
}

// BenchmarkByDomain measures the additional time to find the registered domain.
func BenchmarkByDomain(b *testing.B) {
	hosts := hostLists(1024)["www"]
	for key, name := range []string{shard.ByHost: "host", shard.ByDomain: "domain"} {
		v := shard.New(shard.Config{Key: shard.Key(key)}).Place(inSlots(1, 2, 3, 4))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				v.Owner(hosts[i&1023])
				i++
			}
		})
	}
}

// BenchmarkOwner measures lookups that the first level decides, and those that the second does.
func BenchmarkOwner(b *testing.B) {
	hosts := hostLists(1024)["www"]
	for _, second := range allSeconds {
		for _, n := range []int{4, 16, 100, 1000} {
			for _, level := range []int{1, 2} {
				slots := make([]int, n)
				for i := range slots {
					slots[i] = i*(2-level) - (level - 1)
				}
				v := shard.New(shard.Config{Slots: n, Second: second}).Place(inSlots(slots...))
				b.Run(fmt.Sprintf("%v/nodes=%d/level=%d", second, n, level), func(b *testing.B) {
					b.ReportAllocs()
					i := 0
					for b.Loop() {
						v.Owner(hosts[i&1023])
						i++
					}
				})
			}
		}
	}
}
