package batch

import (
	"cmp"
	"slices"
	"time"
)

// A HostLoad is the work of a host in a round.
type HostLoad struct {
	Host     string
	URLs     int64
	Interval time.Duration // minimum time between two pages
}

// pageTime returns the minimum time per page: the next request is sent an interval after the answer.
func (h *HostLoad) pageTime() time.Duration { return h.Interval + fetchTime }

// duration returns how long a host takes under its interval.
func (h *HostLoad) duration() time.Duration { return time.Duration(h.URLs) * h.pageTime() }

// fetchTime is the approximate time for which a page keeps a thread busy.
const fetchTime = 500 * time.Millisecond

// PlanHosts distributes hosts over partitions so that the round ends as early as possible (see taskLoad.duration).
// Hosts are placed one by one, the slowest first, each where it delays the end of the round least. Ties go to the
// partition with the least work. If hashing ends the round earlier, PlanHosts returns that plan instead. If a few hosts
// have most of the pages, no plan makes the tasks equal: the round takes as long as the slowest host, and threads are
// idle.
func PlanHosts(hosts []HostLoad, partitions, threads int) map[string]int {
	hosts = slices.Clone(hosts)
	slices.SortFunc(hosts, func(a, b HostLoad) int {
		return cmp.Or(cmp.Compare(b.duration(), a.duration()), cmp.Compare(b.URLs, a.URLs), cmp.Compare(a.Host, b.Host))
	})
	tasks := make([]taskLoad, max(partitions, 1))
	end := time.Duration(0)
	plan := make(map[string]int, len(hosts))
	for i := range hosts {
		h := &hosts[i]
		best := 0
		for p := 1; p < len(tasks); p++ {
			one, other := tasks[p].with(h), tasks[best].with(h)
			if cmp.Or(cmp.Compare(max(end, one.duration(threads)), max(end, other.duration(threads))),
				cmp.Compare(one.pages, other.pages)) < 0 {
				best = p
			}
		}
		tasks[best] = tasks[best].with(h)
		end = max(end, tasks[best].duration(threads))
		plan[h.Host] = best
	}
	byHash := make(map[string]int, len(hosts))
	for i := range hosts {
		byHash[hosts[i].Host] = HashPartition([]byte(hosts[i].Host), len(tasks))
	}
	if roundEnd(hosts, byHash, len(tasks), threads) < roundEnd(hosts, plan, len(tasks), threads) {
		return byHash
	}
	return plan
}

// roundEnd returns when the round ends under a plan. Hosts must be sorted by duration, longest first.
func roundEnd(hosts []HostLoad, plan map[string]int, partitions, threads int) (end time.Duration) {
	tasks := make([]taskLoad, partitions)
	for i := range hosts {
		t := &tasks[plan[hosts[i].Host]]
		*t = t.with(&hosts[i])
	}
	for i := range tasks {
		if tasks[i].hosts > 0 {
			end = max(end, tasks[i].duration(threads))
		}
	}
	return end
}

// A taskLoad sums the hosts of a task.
type taskLoad struct {
	hosts, pages int64
	slowest      *HostLoad // the first
}

func (t taskLoad) with(h *HostLoad) taskLoad {
	return taskLoad{t.hosts + 1, t.pages + h.URLs, cmp.Or(t.slowest, h)}
}

// duration returns the approximate duration of a task. If its threads have more work than they can do, hosts take
// turns. If a turn is longer than the interval of the slowest host, that host falls behind and finishes after the
// others.
func (t taskLoad) duration(threads int) time.Duration {
	perPage := fetchTime / time.Duration(max(threads, 1))
	busy, turn, step := time.Duration(t.pages)*perPage, time.Duration(t.hosts)*perPage, t.slowest.pageTime()
	behind := float64(busy) * (1 - float64(step)/float64(max(turn, step)))
	return max(busy, t.slowest.duration()+time.Duration(behind))
}

// A hostTally counts URLs by host. If there are more hosts than it holds, it keeps only those with many URLs (Misra and
// Gries, 1982).
type hostTally struct {
	most  int
	hosts map[string]int64
}

func newHostTally(most int) *hostTally { return &hostTally{most, map[string]int64{}} }

func (t *hostTally) add(host string) {
	if _, known := t.hosts[host]; known || len(t.hosts) < t.most {
		t.hosts[host]++
		return
	}
	for h := range t.hosts {
		if t.hosts[h]--; t.hosts[h] == 0 {
			delete(t.hosts, h)
		}
	}
}

// heaviest returns the n hosts with the most URLs.
func (t *hostTally) heaviest(n int) []HostLoad {
	all := make([]HostLoad, 0, len(t.hosts))
	for host, urls := range t.hosts {
		all = append(all, HostLoad{Host: host, URLs: urls})
	}
	slices.SortFunc(all, func(a, b HostLoad) int {
		return cmp.Or(cmp.Compare(b.URLs, a.URLs), cmp.Compare(a.Host, b.Host))
	})
	return all[:min(n, len(all))]
}
