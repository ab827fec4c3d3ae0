// Package random implements a random order, a baseline for comparing other orders.
package random

import (
	"math"

	"kumo/internal/base/splitmix"
	"kumo/internal/state/rank"
)

// Order is a random order, the same for the same seed. It keeps nothing.
type Order struct {
	rank.Unlinked
	seed uint64
}

var _ rank.Order = Order{}

// New returns the order of a seed.
func New(seed uint64) Order { return Order{seed: seed} }

// levels is how many places URLs are spread over.
const levels = 256

// Importance is a power of two that is drawn for the URL: each step of places is as likely.
func (o Order) Importance(u rank.ID, _ int32) float64 {
	step := splitmix.Next(o.seed+uint64(u)) % levels
	return math.Ldexp(1+float64(step%rank.Steps)/rank.Steps, -int(step/rank.Steps))
}
