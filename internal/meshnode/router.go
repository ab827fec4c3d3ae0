package meshnode

import (
	"sync/atomic"
	"time"

	"kumo/internal/member/mesh"
)

// A Router says whose hosts are. The engine's workers ask it, many at once, and a Node tells it. Before that nothing is
// anybody's.
type Router struct{ view atomic.Pointer[mesh.View] }

// publish makes a view the one that is asked; nil: nothing is this node's.
func (r *Router) publish(v *mesh.View) { r.view.Store(v) }

// Ours reports whether this node is the one to fetch a host.
func (r *Router) Ours(host string) bool {
	v := r.view.Load()
	return v != nil && v.Ours(host)
}

// May reports whether this node may send a request to a host now.
func (r *Router) May(host string) bool {
	v := r.view.Load()
	return v != nil && holds(v.Until(), time.Now()) && v.Ours(host)
}

// Holds reports whether this node knows its place, and that it has it still.
func (r *Router) Holds() bool {
	v := r.view.Load()
	return v != nil && holds(v.Until(), time.Now())
}

// holds reports whether a view holds by both clocks: while a machine is suspended the monotonic one stands still, and
// others have taken its hosts over when it wakes.
func holds(until, now time.Time) bool {
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}
