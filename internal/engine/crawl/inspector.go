package crawl

import (
	"context"

	"kumo/internal/base/weburl"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
)

// Knows reports whether a URL was met before within reach, as the crawl's rules write it. Of a host that is another
// node's it says nothing.
func (i *Inspector) Knows(u weburl.URL) (mine, known bool, err error) {
	u = i.cfg.Canon.Apply(u)
	if i.hosts.router != nil && !i.hosts.router.Ours(i.hosts.slices.OfHost(u.Host(), u.String())) {
		return false, false, nil
	}
	state, _, err := i.known.seen.StateOf(u.String())
	return true, state == seen.Known, err
}

// An Inspector answers questions about a crawl that runs, or does not, and changes nothing of it.
type Inspector struct {
	cfg       *Config
	rules     *policy.Rules
	robots    *robots.Cache
	known     *known
	hosts     *hosts
	links     *Links
	claims    *claims
	ends      *visitEnds
	origins   *origins
	abandoned *statefile.AbandonedQueue
	limits    *limits
	counts    *journalCounts
	ranks     *ranking
	keeper    *rankKeeper
	frontier  *frontier.Frontier
	ledger    *ledger.Ledger
}

// Queues are hosts where URLs wait, those with the longest queues first, so many at most. It looks at all hosts, some
// thousands at a time.
func (i *Inspector) Queues(ctx context.Context, most int) (all []strategy.Queue, err error) {
	for h, err := range i.frontier.Inspector().Hosts(most, frontier.ByPending) {
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if h.Pending > 0 && !h.Away {
			all = append(all, strategy.Queue{Host: h.Key, Pending: h.Pending})
		}
	}
	return all, nil
}

// MostPages is how many pages a host may give; 0: without limit.
func (i *Inspector) MostPages(host string) int64 { return i.limits.quota.HostLimit(host) }

// DurablePages is how many of the pages that were answered are durable. A slow disk may be many pages behind.
func (i *Inspector) DurablePages() int64 {
	if i.ledger.IsDurable() {
		return i.counts.stats.Pages()
	}
	return i.counts.durable.now.Load()
}
