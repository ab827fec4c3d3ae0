package node

import (
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/wait"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// A Router determines which hosts belong to this node. The engine's workers query it concurrently; a Node updates it.
// Before the first update, no host belongs to the node.
type Router struct {
	view  atomic.Pointer[member.View]
	slips atomic.Int64

	joined chan struct{} // closed when the node becomes a member
	once   sync.Once     // for joined
}

// NewRouter returns a router without a view.
func NewRouter() *Router { return &Router{joined: make(chan struct{})} }

func (r *Router) publish(v member.View) {
	r.view.Store(&v)
	if v != nil && v.IsMember() {
		r.once.Do(func() { close(r.joined) })
	}
}

// Joined is closed when the node becomes a member for the first time.
func (r *Router) Joined() <-chan struct{} { return r.joined }

// currentView returns the last published view; nil if there is none.
func (r *Router) currentView() member.View {
	if v := r.view.Load(); v != nil {
		return *v
	}
	return nil
}

// Ours reports whether this node owns the host and has received all its data.
func (r *Router) Ours(host string) bool {
	v := r.currentView()
	return v != nil && v.Ours(host)
}

// IsElsewhere reports whether a node other than self owns the host.
func (r *Router) IsElsewhere(self strategy.Node, host string) bool {
	v := r.currentView()
	if v == nil || v.Ours(host) {
		return false
	}
	owner, state := v.Owner(host)
	return state != strategy.Unknown && owner != self
}

// May reports whether this node may send a request to a host now.
func (r *Router) May(host string) bool {
	v := r.currentView()
	now := time.Now()
	return v != nil && wait.IsAfter(v.Until(), now) && v.MayFetch(host, now)
}

// Ended is called at the end of each request. It counts requests that outlived the lease. A change of the host's owner
// does not count: the previous owner waits for its requests.
func (r *Router) Ended() {
	if v := r.currentView(); v == nil || !wait.IsAfter(v.Until(), time.Now()) {
		r.slips.Add(1)
	}
}

// Slips returns the number of requests that outlived the lease.
func (r *Router) Slips() int64 { return r.slips.Load() }

// Epoch returns the epoch known to the node; 0 if there is none yet.
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

// Until returns the end of the node's lease; the zero time if it has none.
func (r *Router) Until() time.Time {
	if v := r.currentView(); v != nil {
		return v.Until()
	}
	return time.Time{}
}

// owner returns a function that returns the node to which links to a host are sent; false if there currently is none,
// or it is this node.
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
