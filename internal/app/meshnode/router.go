package meshnode

import (
	"sync/atomic"
	"time"

	"kumo/internal/base/wait"
	"kumo/internal/cluster/member/mesh"
)

// A Router determines which hosts belong to this node. The engine's workers query it concurrently; a Node updates it.
// Before the first update, no host belongs to the node.
type Router struct{ now atomic.Pointer[timedView] }

// A timedView is a view with its expiration time.
type timedView struct {
	view  *mesh.View
	until time.Time
}

// publish sets the view that is valid until a time.
func (r *Router) publish(v *mesh.View, until time.Time) { r.now.Store(&timedView{v, until}) }

// end revokes all hosts.
func (r *Router) end() { r.now.Store(nil) }

// Ours reports whether this node fetches the host.
func (r *Router) Ours(host string) bool {
	s := r.now.Load()
	return s != nil && s.view.Ours(host)
}

// May reports whether this node may send a request to a host now.
func (r *Router) May(host string) bool {
	s := r.now.Load()
	return s != nil && wait.IsAfter(s.until, time.Now()) && s.view.Ours(host)
}

// HasPlace reports whether this node currently has a confirmed place in the crawl.
func (r *Router) HasPlace() bool {
	s := r.now.Load()
	return s != nil && wait.IsAfter(s.until, time.Now())
}
