// Package breadth has URLs fetched in the order in which they were found: breadth first.
//
// In one queue that is the order by depth. It differs where hosts have queues of their own, and politeness decides whose
// turn it is.
package breadth

import "kumo/internal/rank"

// Order is the order in which URLs were found: all are as important. It keeps nothing.
type Order struct{}

var _ rank.Order = Order{}

// New returns the order.
func New() Order { return Order{} }

func (Order) Grow(int)                   {}
func (Order) Fetched(*rank.Page)         {}
func (Order) Share(rank.ID, int) float32 { return 0 }
func (Order) Give(rank.ID, float32)      {}
func (Order) Worth(rank.ID) float32      { return 0 }

// Importance is 1.
func (Order) Importance(rank.ID, int32) float64 { return 1 }
