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

// A restorer puts the queues of an earlier run back into the frontier.
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

// restore puts pending URLs back into the frontier, after the delays of robots.txt files. Hosts get their full delay
// again, as the time of their last request is unknown.
func (r *restorer) restore(s *recovery.State) error {
	if err := r.scopeSeeds.load(); err != nil {
		return err
	}
	if r.hosts.slices == nil {
		r.robots.EachDelay(func(origin string, delay time.Duration) { // of hosts that no checkpoint has
			r.frontier.SetDelay(item.HostOf(origin), delay)
			r.frontier.Restore(item.HostOf(origin))
		})
	}
	var enc entry.Encoder
	var decided []entry.Candidate
	queue := s.Queue()
	for i := range queue {
		it := &queue[i]
		if s.Guessed[it.URL] { // otherwise the next process might decide it again, though this one has queued it
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

// restoreDelays applies the delays of robots.txt files to the known slices of hosts. Slices that are new later get them
// at their first visit (applyDelay).
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

// putBack puts a pending item back into the frontier.
func (r *restorer) putBack(it item.Item) {
	it.Path = r.names.intern(it.Path)
	r.frontier.Restore(r.names.intern(r.hosts.slices.Of(it.URL)), it)
}
