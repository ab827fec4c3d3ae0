package pagerank

import (
	"math"
	"sync"
	"sync/atomic"

	"kumo/internal/state/rank"
)

// sums is a vector of 31-bit fixed-point numbers. Few of them overflow. Floats of the same size would lose small
// additions to large sums. One goroutine adds and grows it, while others may read.
type sums struct {
	low vector // the sum modulo 128, in units of 2⁻²⁴; the first bit means that high has the rest

	mu   sync.Mutex // guards high, the length of low, and changes when a sum overflows
	high map[rank.ID]uint32
}

type vector = rank.Vector[uint32]

const (
	unit    = 1 << 24
	hasHigh = 1 << 31 // 128
)

func newSums() *sums { return &sums{high: map[rank.ID]uint32{}} }

// maxAdd is an upper limit of the argument of add, in ranks.
const maxAdd = hasHigh / unit

func toFixed(x float64) uint32 { return uint32(max(0, min(hasHigh-1, math.Round(x*unit)))) }

func (s *sums) grow(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.low.Grow(n)
}

func (s *sums) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.low.Clear()
	clear(s.high)
}

// vector returns the current vector for reading and adding, while it may grow.
func (s *sums) vector() vector {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.low
}

// add adds to a URL's sum at its place in low.
func (s *sums) add(at *uint32, u rank.ID, x uint32) {
	if sum := *at&^hasHigh + x; sum < hasHigh {
		atomic.StoreUint32(at, *at+x)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.high[u]++
	atomic.StoreUint32(at, (*at+x)|hasHigh)
}

// addWorth adds an amount that may be too large for add, or negative.
func (s *sums) addWorth(at *uint32, u rank.ID, worth float64) {
	if worth < 0 {
		s.subtract(at, u, -worth)
		return
	}
	worth = max(0, min(worth, maxAdd*math.MaxUint16))
	high := math.Floor(worth / maxAdd)
	if high > 0 {
		s.mu.Lock()
		s.high[u] += uint32(high)
		atomic.StoreUint32(at, *at|hasHigh)
		s.mu.Unlock()
	}
	s.add(at, u, toFixed(worth-float64(high*maxAdd)))
}

// addWorthToAll adds an amount to all of a page's links.
func (s *sums) addWorthToAll(v *vector, to []rank.ID, worth float64) {
	for _, u := range to {
		s.addWorth(v.At(u), u, worth)
	}
}

// get returns a URL's sum, given its place in low.
func (s *sums) get(at *uint32, u rank.ID) float64 {
	if bits := atomic.LoadUint32(at); bits < hasHigh {
		return float64(bits) / unit
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(uint64(s.high[u])<<31+uint64(atomic.LoadUint32(at)&^hasHigh)) / unit
}

// highCost is the approximate memory in bytes of a sum that has overflown.
const highCost = 24

func (s *sums) bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.low.Room())*4 + int64(len(s.high))*highCost
}

// subtract subtracts an amount, but not more than the sum.
func (s *sums) subtract(at *uint32, u rank.ID, worth float64) {
	left := max(0, s.get(at, u)-worth)
	s.mu.Lock()
	delete(s.high, u)
	atomic.StoreUint32(at, 0)
	s.mu.Unlock()
	s.addWorth(at, u, left)
}
