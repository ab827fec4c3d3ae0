package batch

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"github.com/cespare/xxhash/v2"

	"kumo/internal/base/item"
	"kumo/internal/state/frontier"
)

// unequalHosts returns the hosts of a round: one with 500 pages, many with 5, and a few with 20 that request a
// Crawl-delay of 10 to 30 seconds. The others have an interval of a second.
func unequalHosts(many int) []HostLoad {
	all := []HostLoad{load("large", 500)}
	for i := range many {
		all = append(all, load(fmt.Sprint("small", i), 5))
	}
	for i := range 12 {
		slow := load(fmt.Sprint("slow", i), 20)
		slow.Interval = time.Duration(10+5*(i%5)) * time.Second
		all = append(all, slow)
	}
	return all
}

// byPages returns a plan that considers only the numbers of pages.
func byPages(hosts []HostLoad, n, _ int) map[string]int {
	pages, plan := make([]int64, n), map[string]int{}
	for _, h := range slices.SortedStableFunc(slices.Values(hosts), func(a, b HostLoad) int {
		return cmp.Compare(b.URLs, a.URLs)
	}) {
		least := slices.Index(pages, slices.Min(pages))
		pages[least] += h.URLs
		plan[h.Host] = least
	}
	return plan
}

func byHash(hosts []HostLoad, n, _ int) map[string]int {
	plan := map[string]int{}
	for _, h := range hosts {
		plan[h.Host] = HashPartition([]byte(h.Host), n)
	}
	return plan
}

// simulate runs a round in virtual time, with the frontier of a crawl, and returns its duration and the idle share of
// its threads. Fetching a page takes 100 to 900 ms.
func simulate(t *testing.T, hosts []HostLoad, plan map[string]int, n, threads int, salt string) (took time.Duration,
	idle float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var waited, all atomic.Int64
		var tasks sync.WaitGroup
		begun := time.Now()
		for part := range n {
			tasks.Go(func() {
				f := frontier.New(frontier.Config{Hosts: threads, PerHost: 1, Session: 1, Delay: time.Second})
				for i := range hosts {
					if h := &hosts[i]; plan[h.Host] == part {
						key := h.Host + ".test"
						f.Import(key, h.Interval, h.Interval, item.Item{URL: "http://" + key + "/0"})
						for page := 1; page < int(h.URLs); page++ {
							f.Push(key, item.Item{URL: fmt.Sprint("http://", key, "/", page)})
						}
					}
				}
				var crew sync.WaitGroup
				for range threads {
					crew.Go(func() {
						for {
							since := time.Now()
							v, err := f.Next(t.Context())
							waited.Add(int64(time.Since(since)))
							if err != nil {
								return
							}
							time.Sleep(100*time.Millisecond + time.Duration(xxhash.Sum64String(salt+v.URL)%801)*time.Millisecond)
							f.Done(v, frontier.Result{Outcome: frontier.Answered})
						}
					})
				}
				crew.Wait()
				all.Add(int64(time.Since(begun)) * int64(threads))
			})
		}
		tasks.Wait()
		took, idle = time.Since(begun), float64(waited.Load())/float64(all.Load())
	})
	return took, idle
}

// PlanHosts must not make a round longer than a plan by pages or a random one.
func TestARoundByEachPlan(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var table strings.Builder
	tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "hosts\tthreads\treducers\tby politeness\tidle\tby pages\tidle\tby hash\tidle")
	for _, round := range []struct{ many, threads int }{{100, 30}, {2000, 30}, {600, 3}, {2000, 3}} {
		if testing.Short() && round.many > 1000 {
			continue
		}
		hosts := unequalHosts(round.many)
		for _, n := range []int{2, 5} {
			fmt.Fprintf(tab, "%d\t%d\t%d", len(hosts), round.threads, n)
			var first time.Duration
			for i, plan := range []func([]HostLoad, int, int) map[string]int{PlanHosts, byPages, byHash} {
				took, idle := simulate(t, hosts, plan(hosts, n, round.threads), n, round.threads, fmt.Sprint(seed))
				fmt.Fprintf(tab, "\t%.0f s\t%.1f %%", took.Seconds(), 100*idle)
				if i == 0 {
					first = took
				} else if first > took+took/50 {
					t.Errorf("%d hosts, %d threads, %d reducers: %v, and with plan %d %v", len(hosts), round.threads, n, first, i,
						took)
				}
			}
			fmt.Fprintln(tab)
		}
	}
	tab.Flush()
	t.Logf("\n%s", table.String())
}
