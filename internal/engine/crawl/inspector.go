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

// Knows reports whether a URL, after the crawl's rewriting rules, was met before in scope. mine is false, and known
// means nothing, if another node owns its host.
func (i *Inspector) Knows(u weburl.URL) (mine, known bool, err error) {
	u = i.cfg.Canon.Apply(u)
	if i.hosts.router != nil && !i.hosts.router.Ours(i.hosts.slices.OfHost(u.Host(), u.String())) {
		return false, false, nil
	}
	state, _, err := i.known.seen.StateOf(u.String())
	return true, state == seen.Known, err
}

// An Inspector answers questions about a crawl, which may be running, and changes nothing.
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

	renderings *renderings // nil: no page is rendered
}

// Queues returns up to most hosts with pending URLs, those with the longest queues first. It goes through all hosts,
// some thousands at a time.
func (i *Inspector) Queues(ctx context.Context, most int) (all []strategy.Queue, err error) {
	for h, err := range i.frontier.Inspector().Hosts(most, frontier.ByPending) {
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if h.Pending > 0 && !h.Away {
			all = append(all, strategy.Queue{Host: h.Key, Pending: h.Pending, Delay: h.Delay})
		}
	}
	return all, nil
}

// AtRateLimit reports whether visits wait for the node's request rate.
func (i *Inspector) AtRateLimit() bool { return i.limits.rate.waiting.Load() > 0 }

// MostPages returns the limit of a host's pages; 0: unlimited.
func (i *Inspector) MostPages(host string) int64 { return i.limits.quota.HostLimit(host) }

// DurablePages returns how many of the answered pages are durable. With a slow disk, it may be many pages behind.
func (i *Inspector) DurablePages() int64 {
	if i.ledger.IsDurable() {
		return i.counts.stats.Pages()
	}
	return i.counts.durable.now.Load()
}
