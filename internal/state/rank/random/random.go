// Package random implements a random order, a baseline for comparing other orders.
package random

import (
	"math"

	"kumo/internal/base/splitmix"
	"kumo/internal/state/rank"
)

// Order is a random order, which depends only on the seed. It has no state.
type Order struct {
	rank.Unlinked
	seed uint64
}

var _ rank.Order = Order{}

// New returns the order for a seed.
func New(seed uint64) Order { return Order{seed: seed} }

// levels is the number of places over which URLs are spread.
const levels = 256

// Importance returns a power of two, chosen at random for the URL with equal probability.
func (o Order) Importance(u rank.ID, _ int32) float64 {
	step := splitmix.Next(o.seed+uint64(u)) % levels
	return math.Ldexp(1+float64(step%rank.Steps)/rank.Steps, -int(step/rank.Steps))
}
