package crawl

import (
	"context"
	"time"

	"kumo/internal/frontier"
)

// A Router says whose hosts are, where several nodes share a crawl. It is asked by workers, many at once, for each link and each
// request.
type Router interface {
	Ours(host string) bool // this node is the host's owner and has all that is known of it: links to it are taken in here
	May(host string) bool  // and its lease holds: a request may be sent to it now
}

// putOff is how long a host waits that is not, or just now, this node's to ask.
const putOff = time.Second

func (e *Engine) ours(host string) bool { return e.router == nil || e.router.Ours(host) }

// asker is the host for whose sake a visit is made: that of the URLs that wait for a robots.txt. Where one redirects to another host,
// as "example.com" to "www.example.com", the node that wants the rules follows, whoever owns that host: a request or two for each
// host that does so.
func asker(v *frontier.Visit) string {
	if v.Robots == "" {
		return v.Host
	}
	return hostOf(v.Robots)
}

// isOurs reports whether a visit is this node's to make. If not, its host is on the way to another node, or from one: the visit is put
// off before anything is done.
func (w *worker) isOurs(v *frontier.Visit) bool {
	host := asker(v)
	if w.ours(host) {
		return true
	}
	if v.Robots != "" && w.isAway(host) { // nobody here waits for it any more
		w.frontier.Done(v, frontier.Result{})
		return false
	}
	w.frontier.Postpone(v, putOff)
	return false
}

// may is asked immediately before a request: if the lease is over, the visit is put off.
func (w *worker) may(v *frontier.Visit) bool {
	if w.router == nil || w.router.May(asker(v)) {
		return true
	}
	w.giveBack(v)
	w.frontier.Postpone(v, putOff)
	return false
}

// hold waits while the engine is paused, or has more links for other nodes than it may keep.
func (e *Engine) hold(ctx context.Context) {
	for e.held() && ctx.Err() == nil {
		e.pause.await(ctx)
		if e.out != nil {
			e.out.gate.await(ctx)
		}
	}
}

// held reports whether no new URL is to be taken.
func (e *Engine) held() bool { return e.pause.shut() || e.out != nil && e.out.gate.shut() }

// Share says how many nodes crawl. Hosts of several may be at one server's address, which is to see no more of all than of one.
func (e *Engine) Share(nodes int) { e.frontier.ShareAddresses(nodes) }

// Pause lets no new URL be taken while it is on. Requests under way go on.
func (e *Engine) Pause(on bool) { e.pause.set(on) }
