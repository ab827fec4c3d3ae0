package node

import (
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/wait"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// A Router says whose hosts are. The engine's workers ask it, many at once, and a Node tells it. Before that nothing is
// anybody's.
type Router struct {
	view  atomic.Pointer[member.View]
	slips atomic.Int64

	joined chan struct{} // closed when the node is a member
	once   sync.Once     // closes it
}

// NewRouter returns a router that knows nothing yet.
func NewRouter() *Router { return &Router{joined: make(chan struct{})} }

func (r *Router) publish(v member.View) {
	r.view.Store(&v)
	if v != nil && v.IsMember() {
		r.once.Do(func() { close(r.joined) })
	}
}

// Joined is closed when the node is a member for the first time.
func (r *Router) Joined() <-chan struct{} { return r.joined }

// currentView is the view that was published last; nil if there is none.
func (r *Router) currentView() member.View {
	if v := r.view.Load(); v != nil {
		return *v
	}
	return nil
}

// Ours reports whether this node owns a host, and has all that is known of it.
func (r *Router) Ours(host string) bool {
	v := r.currentView()
	return v != nil && v.Ours(host)
}

// May reports whether this node may send a request to a host now.
func (r *Router) May(host string) bool {
	v := r.currentView()
	now := time.Now()
	return v != nil && wait.IsAfter(v.Until(), now) && v.MayFetch(host, now)
}

// Ended is told that a request has ended. It counts those to whose end the lease did not last. That a host has another
// owner by then is none: who hands it over waits for what is under way.
func (r *Router) Ended() {
	if v := r.currentView(); v == nil || !wait.IsAfter(v.Until(), time.Now()) {
		r.slips.Add(1)
	}
}

// Slips is the number of requests that ended when this node might not have begun them any more.
func (r *Router) Slips() int64 { return r.slips.Load() }

// Epoch is the epoch that the node knows of; 0 before it knows one.
func (r *Router) Epoch() uint64 {
	if v := r.currentView(); v != nil {
		return v.Epoch()
	}
	return 0
}

// Member reports whether the node is a member, as far as it knows.
func (r *Router) Member() bool {
	v := r.currentView()
	return v != nil && v.IsMember()
}

// Until is when the node's lease ends unless it is renewed; the zero time if it has none.
func (r *Router) Until() time.Time {
	if v := r.currentView(); v != nil {
		return v.Until()
	}
	return time.Time{}
}

// owner is to whom links go that are not this node's: false while nobody can take them.
func (r *Router) owner(self strategy.Node) func(host string) (strategy.Node, bool) {
	v := r.currentView()
	return func(host string) (strategy.Node, bool) {
		if v == nil {
			return "", false
		}
		to, state := v.Owner(host)
		return to, state != strategy.Unknown && to != self
	}
}
