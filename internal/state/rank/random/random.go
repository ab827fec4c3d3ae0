// Package random implements a random order, a baseline for comparing other orders.
package random

import (
	"math"

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
	step := mix(o.seed+uint64(u)) % levels
	return math.Ldexp(1+float64(step%rank.Steps)/rank.Steps, -int(step/rank.Steps))
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
