package meshnode

import (
	"sync/atomic"
	"time"

	"kumo/internal/base/wait"
	"kumo/internal/cluster/member/mesh"
)

// A Router says whose hosts are. The engine's workers ask it, many at once, and a Node tells it. Before that nothing is
// anybody's.
type Router struct{ now atomic.Pointer[timedView] }

// A standing is a view, and when it ends to hold.
type timedView struct {
	view  *mesh.View
	until time.Time
}

// publish makes a view the one that is asked, until it ends to hold.
func (r *Router) publish(v *mesh.View, until time.Time) { r.now.Store(&timedView{v, until}) }

// end lets nothing be this node's.
func (r *Router) end() { r.now.Store(nil) }

// Ours reports whether this node is the one to fetch a host.
func (r *Router) Ours(host string) bool {
	s := r.now.Load()
	return s != nil && s.view.Ours(host)
}

// May reports whether this node may send a request to a host now.
func (r *Router) May(host string) bool {
	s := r.now.Load()
	return s != nil && wait.IsAfter(s.until, time.Now()) && s.view.Ours(host)
}

// HasPlace reports whether this node knows its place, and that it has it still.
func (r *Router) HasPlace() bool {
	s := r.now.Load()
	return s != nil && wait.IsAfter(s.until, time.Now())
}
