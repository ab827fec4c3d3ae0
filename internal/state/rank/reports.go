package rank

import "math"

// Reports records the worth of links to other nodes' URLs that was reported to them, in 2 bytes per URL: first all of
// it, then differences that change the URL's place. Worth also changes without new links, since it follows the ranks of
// pages; see [Reports.Threshold].
type Reports struct {
	unit   float32
	worths Vector[uint16] // first half of a float32
	budget float64        // number of URLs that may be reported again
}

// NewReports returns empty Reports for an order with this [Order.Unit].
func NewReports(unit float32) *Reports { return &Reports{unit: unit} }

// Grow makes room for all numbers below n.
func (t *Reports) Grow(n int) { t.worths.Grow(n) }

// Worth returns the worth reported for a URL; 0: none.
func (t *Reports) Worth(u ID) float32 { return math.Float32frombits(uint32(*t.worths.At(u)) << 16) }

// Delta returns the difference between the worth of links to a URL and the reported worth; it may be negative. It is 0
// while the difference changes the URL's importance by less than a place, without regard to other nodes' links.
func (t *Reports) Delta(u ID, worth float32) float32 {
	if told := t.Worth(u); told == 0 || t.places(told, worth) > 0 {
		return half(worth) - told
	}
	return 0
}

// Add adds to the worth reported for a URL.
func (t *Reports) Add(u ID, more float32) {
	*t.worths.At(u) = uint16(math.Float32bits(half(t.Worth(u)+more)) >> 16)
}

// half rounds to a number that half of a float32 can represent.
func half(x float32) float32 {
	return math.Float32frombits((math.Float32bits(max(0, x)) + 1<<15) &^ (1<<16 - 1))
}

// Bytes returns the memory used.
func (t *Reports) Bytes() int64 { return int64(t.worths.Room()) * 2 }

// budgetPerLink is the average number of URLs that may be reported again per link to another node's URL. maxBudget
// bounds the number that accumulates.
const (
	budgetPerLink = 0.25
	maxBudget     = 1 << 17
)

// AddBudget adds budget for a page with links to others' URLs.
func (t *Reports) AddBudget(links int) {
	t.budget = min(t.budget+budgetPerLink*float64(links), maxBudget)
}

// A Histogram counts reported URLs by the change of their places.
type Histogram struct{ at [mostPlaces + 1]int }

// mostPlaces is the change from which on all changes count as equal.
const mostPlaces = 20 * Steps

// Count adds a URL, given the current worth of links to it.
func (t *Reports) Count(c *Histogram, u ID, worth float32) {
	if told := t.Worth(u); told > 0 {
		c.at[t.places(told, worth)]++
	}
}

// Threshold returns the change of places from which on URLs should be reported again, so that the budget suffices.
// There may be no such URLs.
func (t *Reports) Threshold(c *Histogram) (places int) {
	for places = len(c.at); places > 1 && t.budget >= float64(c.at[places-1]); places-- {
		t.budget -= float64(c.at[places-1])
	}
	return places
}

// Changed reports whether the place of a URL has changed by at least places, given the current worth of links to it.
func (t *Reports) Changed(u ID, worth float32, places int) bool {
	told := t.Worth(u)
	return told > 0 && t.places(told, worth) >= places
}

// places returns by how many places a URL's importance changes with the worth of links, as far as this node knows.
func (t *Reports) places(was, is float32) int {
	if d := is - was; d > -(was+t.unit)/Steps && d < (was+t.unit)/Steps { // the usual case
		return 0
	}
	places := Steps * math.Abs(math.Log2(float64(is+t.unit)/float64(was+t.unit)))
	return int(max(1, min(places, mostPlaces)))
}
