package crawl

import (
	"maps"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/content/robots"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/recovery"
	"kumo/internal/state/transfer"
)

// A restorer puts what an earlier run has left back into the frontier.
type restorer struct {
	filtered   []entry.Candidate // see skipReports
	hosts      *hosts
	scopeSeeds *scopeSeeds
	names      *names
	ranks      *ranking
	robots     *robots.Cache
	transfer   *transfer.Endpoint
	frontier   *frontier.Frontier
	ledger     *ledger.Ledger
}

// restore puts what waits back into the frontier, behind the delays that robots.txt files ask for. Hosts owe their full
// delay again: nobody knows when their last request was.
func (r *restorer) restore(s *recovery.State) error {
	if err := r.scopeSeeds.load(); err != nil {
		return err
	}
	if r.hosts.slices == nil {
		r.robots.EachDelay(func(origin string, delay time.Duration) { // of hosts that no checkpoint knows
			r.frontier.SetDelay(item.HostOf(origin), delay)
			r.frontier.Restore(item.HostOf(origin))
		})
	}
	var enc entry.Encoder
	var decided []entry.Candidate
	queue := s.Queue()
	for i := range queue {
		it := &queue[i]
		if s.Guessed[it.URL] { // or else the next process may decide it again, with the frontier having it from this one
			r.ranks.lift(it)
			enc.Found(it)
			decided = append(decided, entry.Candidate{Host: it.Host(), Item: *it})
		}
	}
	r.ranks.rankAll(queue)
	for _, it := range queue {
		r.putBack(it)
	}
	r.ledger.Enqueue(enc.Writer)
	r.transfer.Committed(decided)
	err := s.EachAbandoned(func(it item.Item) error {
		r.ranks.rank(&it)
		r.putBack(it)
		return nil
	})
	r.restoreDelays()
	r.filtered = slices.SortedFunc(maps.Values(s.Unexplained),
		func(a, b entry.Candidate) int { return strings.Compare(a.Item.URL, b.Item.URL) })
	s.ReleaseMemory()
	return err
}

// restoreDelays has the slices that are known, where hosts are cut into several, owe what robots.txt files ask for.
// Those that come later are told at their first visit (applyDelay).
func (r *restorer) restoreDelays() {
	if r.hosts.slices == nil {
		return
	}
	r.robots.EachDelay(func(origin string, delay time.Duration) {
		for slice := range r.hosts.slicesOf(origin) {
			r.frontier.SetDelay(slice, delay)
			r.frontier.Restore(slice)
		}
	})
}

// putBack puts an item that waited in an earlier run back into the frontier.
func (r *restorer) putBack(it item.Item) {
	it.Path = r.names.intern(it.Path)
	r.frontier.Restore(r.names.intern(r.hosts.slices.Of(it.URL)), it)
}
