package batch

import (
	"cmp"
	"slices"
	"time"
)

// A HostLoad is a host's part of a round.
type HostLoad struct {
	Host     string
	URLs     int64
	Interval time.Duration // between two of them
}

// takes is how long politeness makes a host take.
func (h *HostLoad) takes() time.Duration { return time.Duration(h.URLs) * h.Interval }

// perFetch is about how long a thread is busy with a page.
const perFetch = 500 * time.Millisecond

// PlanHosts spreads hosts over partitions so that the round ends as soon as may be. What a task takes is the longer of
// two times: what politeness makes its slowest host take, and what its threads take for all its pages. Hosts are placed
// one by one, those that take longest first, each where the round's end is put off least; among equals, where there is
// the least to do. Where few hosts have most of the pages no plan makes the tasks equal: the round takes as long as the
// slowest host, and threads are idle.
func PlanHosts(hosts []HostLoad, partitions, threads int) map[string]int {
	hosts = slices.Clone(hosts)
	slices.SortFunc(hosts, func(a, b HostLoad) int {
		return cmp.Or(cmp.Compare(b.takes(), a.takes()), cmp.Compare(b.URLs, a.URLs), cmp.Compare(a.Host, b.Host))
	})
	type task struct {
		slowest time.Duration
		pages   int64
	}
	tasks := make([]task, max(partitions, 1))
	after := func(t task, h *HostLoad) time.Duration {
		return max(t.slowest, h.takes(), time.Duration(t.pages+h.URLs)*perFetch/time.Duration(max(threads, 1)))
	}
	end := time.Duration(0)
	plan := make(map[string]int, len(hosts))
	for i := range hosts {
		h := &hosts[i]
		best := 0
		for p := 1; p < len(tasks); p++ {
			if c := cmp.Or(cmp.Compare(max(end, after(tasks[p], h)), max(end, after(tasks[best], h))),
				cmp.Compare(tasks[p].pages, tasks[best].pages)); c < 0 {
				best = p
			}
		}
		t := &tasks[best]
		end = max(end, after(*t, h))
		t.slowest, t.pages = max(t.slowest, h.takes()), t.pages+h.URLs
		plan[h.Host] = best
	}
	return plan
}

// A hostTally counts URLs by host, of more hosts than it holds only of those with many (Misra and Gries, 1982).
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

// heaviest are the n hosts with the most URLs.
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
