// Package breadth has URLs fetched in the order in which they were found: breadth first.
//
// In one queue that is the order by depth. It differs where hosts have queues of their own, and politeness decides
// whose turn it is.
package breadth

import "kumo/internal/state/rank"

// Order is the order in which URLs were found: all are as important. It keeps nothing.
type Order struct{ rank.Unlinked }

var _ rank.Order = Order{}

// New returns the order.
func New() Order { return Order{} }

// Importance is 1.
func (Order) Importance(rank.ID, int32) float64 { return 1 }
