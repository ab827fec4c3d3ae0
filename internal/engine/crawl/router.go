package crawl

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/item"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/transfer"
)

// A Router reports which hosts this node owns, where several nodes share a crawl. Workers call it concurrently, for
// each link and each request. Hosts with several slices are queried by slice.
type Router interface {
	Ours(host string) bool // this node owns the host and has all its data: links to it are admitted here
	May(host string) bool  // the lease holds too, and the host may be visited: a request may be sent now
}

// If this node may not visit a host now (because the host is being transferred, the lease has expired, or no node may
// visit the host), its visits are postponed by a quarter of the time for which this has been so. So a host waits little
// longer than necessary, and 100,000 hosts that have long been blocked cause only 3333 attempts per second.
const (
	minPostponement   = time.Second
	maxPostponement   = 30 * time.Second
	maxPostponedHosts = 1 << 17 // hosts; a forgotten one starts from minPostponement
)

// hosts reports which hosts, or slices, this node owns, and maps URLs, items and origins to slices.
type hosts struct {
	router   Router       // nil: this node owns all hosts
	slices   *item.Slices // nil: each host is one slice
	frontier *frontier.Frontier
}

// sliceOf returns the slice of a candidate's URL.
func (h *hosts) sliceOf(c *entry.Candidate) string { return h.slices.OfHost(c.Host, c.Item.URL) }

// slicesOf yields the slices of an origin's host: the host itself, or, with several slices, those that the frontier
// has.
func (h *hosts) slicesOf(origin string) iter.Seq[string] {
	host := item.HostOf(origin)
	return func(yield func(string) bool) {
		if h.slices == nil {
			yield(host)
			return
		}
		for slice := range h.slices.All(host) {
			if h.frontier.Has(slice) && !yield(slice) {
				return
			}
		}
	}
}

// permits decides whether a request may be sent to a host now.
type permits struct {
	hosts         *hosts
	origins       *origins
	postponements *postponements
	transfer      *transfer.Endpoint
}

// postponements tracks the hosts whose visits were postponed lately.
type postponements struct {
	some atomic.Bool // there are any

	mu    sync.Mutex // guards the fields below
	hosts *bounded.Recent[uint64, postponedSpan]
}

// A postponedSpan is the times, in Unix milliseconds, of the first and the last of a host's postponements in a row.
type postponedSpan struct{ first, last int64 }

func newPostponements() *postponements {
	return &postponements{hosts: bounded.NewRecent[uint64, postponedSpan](maxPostponedHosts)}
}

// next returns for how long a visit to a host is postponed now.
func (p *postponements) next(host uint64, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := now.UnixMilli()
	t, met := p.hosts.Get(host)
	if !met || at-t.last > 4*maxPostponement.Milliseconds() || at < t.last {
		t.first = at
	}
	t.last = at
	p.hosts.Put(host, t)
	p.some.Store(true)
	return min(max(time.Duration(at-t.first)*time.Millisecond/4, minPostponement), maxPostponement)
}

// end removes a host that may be visited again.
func (p *postponements) end(host uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hosts.Delete(host)
	p.some.Store(p.hosts.Len() > 0)
}

func (h *hosts) ours(host string) bool { return h.router == nil || h.router.Ours(host) }

// politenessHost returns the host for whose sake a visit is made: for a robots.txt, the host of the URLs that wait for
// it, or a slice of it that this node may visit. A redirected robots.txt is followed by the node that needs the rules,
// whoever owns the target's host.
func (h *hosts) politenessHost(v *frontier.Visit) string {
	if v.Robots == "" {
		return v.Host
	}
	host := item.HostOf(v.Robots)
	if h.slices == nil {
		return host
	}
	if item.HostOfSlice(v.Host) == host {
		return v.Host
	}
	for slice := range h.slicesOf(v.Robots) {
		if host = slice; h.ours(slice) {
			break
		}
	}
	return host
}

// isOurs reports whether this node may make a visit now. If not, it postpones the visit before anything is done: the
// host is being transferred, or must not be visited.
func (w *worker) isOurs(v *frontier.Visit) bool {
	if w.visits.permits.hosts.router == nil || w.visits.permits.mayRequest(w.politenessHost) {
		return true
	}
	if v.Robots != "" && !w.visits.permits.hosts.ours(w.politenessHost) &&
		w.visits.permits.transfer.IsAway(w.politenessHost) { // its URLs have moved to another node
		w.visits.frontier.Done(v, frontier.Result{})
		return false
	}
	w.postpone(v)
	return false
}

// checkPermit is called immediately before a request. If the lease has expired, it postpones the visit and returns
// false.
func (w *worker) checkPermit(v *frontier.Visit) bool {
	if w.visits.permits.hosts.router == nil || w.visits.permits.mayRequest(w.politenessHost) {
		return true
	}
	w.returnQuota(v)
	w.postpone(v)
	return false
}

func (p *permits) mayRequest(host string) bool {
	may := p.hosts.router.May(host)
	if may && p.postponements.some.Load() {
		p.postponements.end(p.origins.Hash(host))
	}
	return may
}

func (w *worker) postpone(v *frontier.Visit) {
	w.visits.frontier.Postpone(v,
		w.visits.permits.postponements.next(w.visits.outcomes.origins.Hash(w.politenessHost), w.visits.cfg.Now()))
}

// Share sets the number of nodes in the crawl. Hosts of several nodes may have the same server address, which must not
// get more requests than from one node.
func (e *Engine) Share(nodes int) { e.frontier.ShareAddresses(nodes) }

// Pause stops or resumes new visits. Requests under way continue.
func (e *Engine) Pause(on bool) { e.holds.pause.set(on) }
