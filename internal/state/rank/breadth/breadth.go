// Package breadth implements the breadth-first order: URLs are fetched in the order in which they were found.
//
// In a single queue this equals the order by depth. It differs if hosts have queues of their own and politeness decides
// which host is next.
package breadth

import "kumo/internal/state/rank"

// Order is the order in which URLs were found: all have the same importance. It has no state.
type Order struct{ rank.Unlinked }

var _ rank.Order = Order{}

// New returns the order.
func New() Order { return Order{} }

// Importance returns 1.
func (Order) Importance(rank.ID, int32) float64 { return 1 }
