package crawl

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/engine/visit"
)

// The counters have exact numbers of pages by host unless there are too many hosts. Then a crawl with a limit counts
// the pages of earlier runs in the URL database, once. For the limit of registered domains this happens only if the
// crawl has at least that many pages in total, so a domain may get twice its limit. Bytes of earlier runs come from the
// counters: with too many hosts, these have only the slowest ones.

// Rules in skipped.jsonl for URLs of a host that has reached a limit.
const (
	RulePagesPerHost = "max-pages-per-host"
	RuleBytesPerHost = "max-bytes-per-host"
)

// loadHostCounts adds the pages and bytes of earlier runs to the quota, by host and domain.
func (lim *limits) loadHostCounts(ctx context.Context) error {
	l := lim.cfg.pageLimits()
	s := lim.stats.Snapshot()
	if lim.quota.CountsBytes() {
		for host, h := range s.Hosts {
			lim.quota.AddBytes(host, h.Bytes)
		}
	}
	reads := (s.Partial || lim.hosts.router != nil) && lim.known.db != nil // other nodes may have fetched some
	if !lim.quota.CountsPages() && (l.PerDomain == 0 || reads && s.Pages < l.PerDomain) {
		return nil
	}
	if reads {
		if err := lim.countHosts(ctx); err != nil {
			return fmt.Errorf("count the pages of hosts: %w", err)
		}
	} else {
		for host, h := range s.Hosts {
			lim.addEarlier(host, h.Pages)
		}
	}
	lim.quota.SetComplete()
	return nil
}

func (lim *limits) addEarlier(host string, pages int64) {
	lim.quota.AddEarlier(host, pages)
	if u, err := weburl.Parse("http://" + host + "/"); err == nil {
		lim.quota.AddEarlierOfDomain(lim.traps.countedDomain(u), pages)
	}
}

// pageQuota returns the quota if pages by host are limited, otherwise nil.
func (lim *limits) pageQuota() *policy.Quota {
	if !lim.quota.CountsPages() {
		return nil
	}
	return lim.quota
}

func (lim *limits) countHosts(ctx context.Context) error {
	for entry, err := range lim.known.db.Scan("") {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if !entry.Answered() {
			continue
		}
		if u, err := weburl.Parse(entry.URL); err == nil {
			lim.addEarlier(u.Host(), 1)
		}
	}
	return nil
}

// arrangePatience bounds how long hostPages waits until the URLs in memory are sorted.
const arrangePatience = 100 * time.Millisecond

// hostPages returns how many pages a host has given, for display. It may miss URLs that are not sorted yet.
func (lim *limits) hostPages(host string) (int64, error) {
	if n, known := lim.stats.HostPages(host); known && lim.hosts.router == nil {
		return n, nil
	}
	if n, known := lim.quota.HostPages(host); known || lim.known.db == nil {
		return n, nil
	}
	var n int64
	lim.known.db.Arrange(arrangePatience)
	for _, scheme := range []string{"http://", "https://"} {
		for entry, err := range lim.known.db.ScanAfter(scheme+host+"/", "") {
			if err != nil {
				return 0, fmt.Errorf("count the pages of %s: %w", host, err)
			}
			if entry.Answered() {
				n++
			}
		}
	}
	return n, nil
}

// limits counts pages and bytes against the crawl's limits, and stops the run when one is reached.
type limits struct {
	cfg   *Config
	quota *policy.Quota
	rate  *rateLimit
	tries atomic.Int64 // requests per URL before it has failed
	bytes atomic.Int64 // over the wire, in all runs

	sharing   sync.Mutex // serializes updates of shareUsed
	shareUsed valve      // shut while this node has used its share of the limit of all nodes

	known   *known
	hosts   *hosts
	traps   *trapGuard
	stats   *stats.Counter
	stopper *stopper
}

// A rateLimit limits the requests per second of this node. Visits wait for it in turn. Only the first of them has a
// reservation, so that another one can end its wait without leaving the time unused.
type rateLimit struct {
	limiter *rate.Limiter
	first   chan struct{} // capacity 1: full while a visit has a reservation
	waiting atomic.Int32  // visits that wait
}

func newRateLimit(perSecond float64) *rateLimit {
	return &rateLimit{limiter: visit.NewLimiter(perSecond), first: make(chan struct{}, 1)}
}

// wait waits until a request may be sent. It returns false if ctx or the wait ends before.
func (r *rateLimit) wait(ctx context.Context, end <-chan struct{}) bool {
	if r.limiter.Limit() == rate.Inf {
		return ctx.Err() == nil
	}
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	select {
	case r.first <- struct{}{}:
	case <-ctx.Done():
		return false
	case <-end:
		return false
	}
	defer func() { <-r.first }()
	reserved := r.limiter.Reserve()
	wait := time.NewTimer(reserved.Delay())
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-ctx.Done():
	case <-end:
	}
	reserved.Cancel()
	return false
}

// A stopper ends a run.
type stopper struct{ cancel context.CancelCauseFunc } // set when the run starts

func (s *stopper) stop(why error) { s.cancel(why) }

// stopAtLimits stops the run at once if earlier runs have used up its limits.
func (lim *limits) stopAtLimits() {
	switch {
	case lim.quota.PageLimit() > 0 && lim.stats.NewPages() >= lim.quota.PageLimit():
		lim.stopper.stop(lim.pagesReached())
	case lim.cfg.Bytes > 0 && lim.bytes.Load() >= lim.cfg.Bytes:
		lim.stopper.stop(lim.bytesReached())
	}
}

// count adds bytes, and stops the crawl at their limit.
func (lim *limits) count(n int64) {
	if total := lim.bytes.Add(n); lim.cfg.Bytes > 0 && total >= lim.cfg.Bytes {
		lim.stopper.stop(lim.bytesReached())
	}
}

func (lim *limits) pagesReached() error {
	return policy.LimitReached(stats.Count(lim.quota.PageLimit(), "pages"))
}

func (lim *limits) bytesReached() error {
	return policy.LimitReached(stats.Count(lim.cfg.Bytes, "bytes"))
}

// updateShare blocks the workers if the node's share is used up, and otherwise releases them. It must be called after
// each change except one by Acquire.
func (lim *limits) updateShare() {
	lim.sharing.Lock()
	defer lim.sharing.Unlock()
	lim.shareUsed.set(lim.quota.ShareUsed())
}

// SetPageShare limits the pages of this node to its share of the limit of all nodes: see [policy.Quota.SetShare]. While
// the share is used up, nothing is visited.
func (e *Engine) SetPageShare(pages int64) (ceiling int64) {
	ceiling = e.limits.quota.SetShare(pages)
	e.limits.updateShare()
	return ceiling
}

// CountedPages returns the number of this node's pages that count against the page limit.
func (e *Engine) CountedPages() int64 { return e.limits.quota.Done() }

// UsedPages returns CountedPages and the number of pages in progress.
func (e *Engine) UsedPages() int64 { return e.limits.quota.Used() }

// maxTries returns how many requests a URL gets before it has failed.
func (lim *limits) maxTries(url string) int {
	if len(lim.cfg.Overrides.All()) > 0 {
		if u, err := weburl.Parse(url); err == nil {
			if own := lim.cfg.Overrides.ForURL(u).Tries; own != nil {
				return *own
			}
		}
	}
	return int(lim.tries.Load())
}
