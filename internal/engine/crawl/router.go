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

// A Router says whose hosts are, where several nodes share a crawl. It is asked by workers, many at once, for each link
// and each request. Where hosts are cut into slices, it is asked for these.
type Router interface {
	Ours(host string) bool // this node is the host's owner and has all that is known of it: links to it are taken in here
	May(host string) bool  // and its lease holds, and the host is not to be left alone: a request may be sent to it now
}

// A host that is not, or not now, this node's to ask, because it is on its way between nodes, the lease is over, or
// nobody is to ask it, is put off by a quarter of the time for which that has been so. So it waits little longer than
// it must, and 100,000 hosts that have long been left alone are looked at 3333 times a second.
const (
	minPostponement   = time.Second
	maxPostponement   = 30 * time.Second
	maxPostponedHosts = 1 << 17 // hosts; who is forgotten begins anew
)

// hosts knows which hosts, or slices of hosts, this node owns, and which slices a URL, an item or an origin is in.
type hosts struct {
	router   Router       // nil: this node owns all hosts
	slices   *item.Slices // nil: a host is one slice
	frontier *frontier.Frontier
}

// sliceOf is the slice that a candidate's URL is in.
func (h *hosts) sliceOf(c *entry.Candidate) string { return h.slices.OfHost(c.Host, c.Item.URL) }

// slicesOf yields the slices of an origin's host: that host, or where it is cut into several, those that the frontier
// knows.
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

// postponements are the hosts that were put off lately.
type postponements struct {
	some atomic.Bool // there are any

	mu    sync.Mutex // guards below
	hosts *bounded.Recent[uint64, postponedSpan]
}

// An postponedSpan is when a host was put off for the first time in a row, and for the last, in Unix milliseconds.
type postponedSpan struct{ first, last int64 }

func newPostponements() *postponements {
	return &postponements{hosts: bounded.NewRecent[uint64, postponedSpan](maxPostponedHosts)}
}

// nextPart is how long a host is to be put off now.
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

// addFinished is told of a host that may be asked.
func (p *postponements) end(host uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hosts.Delete(host)
	p.some.Store(p.hosts.Len() > 0)
}

func (h *hosts) ours(host string) bool { return h.router == nil || h.router.Ours(host) }

// politenessHost is the host for whose sake a visit is made: for a robots.txt, the host of the URLs that wait for it,
// or a slice of that which this node may ask. A robots.txt that redirects to another host is followed by the node that
// wants the rules, whoever owns that host.
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

// isOurs reports whether a visit is this node's to make now. If not, it is put off before anything is done: its host is
// on the way to another node, or from one, or is not to be asked.
func (w *worker) isOurs(v *frontier.Visit) bool {
	if w.visits.permits.hosts.router == nil || w.visits.permits.mayRequest(w.politenessHost) {
		return true
	}
	if v.Robots != "" && !w.visits.permits.hosts.ours(w.politenessHost) &&
		w.visits.permits.transfer.IsAway(w.politenessHost) { // nobody here waits for it any more
		w.visits.frontier.Done(v, frontier.Result{})
		return false
	}
	w.postpone(v)
	return false
}

// checkPermit is asked immediately before a request: if the lease is over, the visit is put off.
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
	w.visits.frontier.Postpone(
		v,
		w.visits.permits.postponements.next(w.visits.outcomes.origins.Hash(w.politenessHost), w.visits.cfg.Now()),
	)
}

// Share says how many nodes crawl. Hosts of several may be at one server's address, which is to see no more of all than
// of one.
func (e *Engine) Share(nodes int) { e.frontier.ShareAddresses(nodes) }

// Pause lets no new URL be taken while it is on. Requests under way go on.
func (e *Engine) Pause(on bool) { e.holds.pause.set(on) }
