// Package depth implements the default order, in which URLs fewer hops from a seed go first.
package depth

import (
	"math"

	"kumo/internal/state/rank"
)

// Order is the order by depth: each link from a seed halves the importance. It has no state.
type Order struct{ rank.Unlinked }

var _ rank.Order = Order{}

// New returns the order.
func New() Order { return Order{} }

// deepest is the depth beyond which importance no longer decreases.
const deepest = 1000

// Importance returns 1/2 to the power of the depth.
func (Order) Importance(_ rank.ID, depth int32) float64 {
	return math.Ldexp(1, -int(max(0, min(depth, deepest))))
}
