package batch

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func load(host string, urls int64) HostLoad {
	return HostLoad{Host: host, URLs: urls, Interval: time.Second}
}

func TestHostsThatTakeLongAreApart(t *testing.T) {
	plan := PlanHosts([]HostLoad{load("a", 1000), load("b", 900), load("c", 100), load("d", 100)}, 2, 30)
	if plan["a"] == plan["b"] {
		t.Errorf("both large hosts are in one task: %v", plan)
	}
	if plan["c"] != plan["b"] || plan["d"] == plan["c"] && plan["d"] != plan["b"] {
		t.Errorf("pages are not as equal as may be: %v", plan)
	}
}

func TestASlowHostCountsByItsTime(t *testing.T) {
	slow := load("slow", 100)
	slow.Interval = 30 * time.Second // longer than the two others together
	plan := PlanHosts([]HostLoad{load("a", 1000), load("b", 1000), slow}, 2, 30)
	if len(plan) != 3 {
		t.Fatalf("%v", plan)
	}
	if plan["a"] == plan["slow"] && plan["b"] == plan["slow"] {
		t.Errorf("all are in the slow host's task: %v", plan)
	}
}

func TestNoPlanIsWorseThanChance(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		var hosts []HostLoad
		for i := range 2 + dice.IntN(200) {
			hosts = append(hosts, load(fmt.Sprint("h", i), 1+int64(dice.ExpFloat64()*100)))
		}
		n, threads := 1+dice.IntN(6), 1+dice.IntN(30)
		plan := PlanHosts(hosts, n, threads)
		byHash := map[string]int{}
		for _, h := range hosts {
			byHash[h.Host] = HashPartition([]byte(h.Host), n)
		}
		slices.SortFunc(hosts, func(a, b HostLoad) int { return cmp.Compare(b.duration(), a.duration()) })
		if planned, hashed := roundEnd(hosts, plan, n, threads), roundEnd(hosts, byHash, n, threads); planned > hashed {
			t.Errorf("%d hosts, %d tasks of %d threads: %v, and by hash %v", len(hosts), n, threads, planned, hashed)
		}
	}
}

func TestATallyKeepsTheHeavyHosts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	tally := newHostTally(100)
	for i := range 100_000 {
		switch {
		case i%10 == 0:
			tally.add("heavy")
		case i%20 == 1:
			tally.add("half as heavy")
		default:
			tally.add(fmt.Sprint("h", dice.IntN(50_000)))
		}
	}
	if len(tally.hosts) > 100 {
		t.Errorf("%d hosts are held", len(tally.hosts))
	}
	if top := tally.heaviest(2); top[0].Host != "heavy" || top[1].Host != "half as heavy" {
		t.Errorf("%v", top)
	}
}
