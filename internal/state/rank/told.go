package rank

import "math"

// Reports is what a node has told others about the worth of links to their URLs, in 2 bytes a URL: all at first, then
// differences that move the URL's place. Worth follows the ranks of pages, so it changes without new links, too: see
// [Told.Choose].
type Reports struct {
	unit   float32
	worths Vector[uint16] // the first half of a float32
	budget float64        // URLs that may be told again
}

// NewReports is what is told by an order of which unit is [Order.Unit]: nothing yet.
func NewReports(unit float32) *Reports { return &Reports{unit: unit} }

// Grow makes room for all numbers below n.
func (t *Reports) Grow(n int) { t.worths.Grow(n) }

// Worth is what was told of a URL; 0: nothing was.
func (t *Reports) Worth(u ID) float32 { return math.Float32frombits(uint32(*t.worths.At(u)) << 16) }

// Delta is what is to be told of a URL, the links to which are worth so much by now, beyond what was; below 0 if it is
// less. It is 0 while the URL's importance differs by less than a place for it, whatever other nodes know of it.
func (t *Reports) Delta(u ID, worth float32) float32 {
	if told := t.Worth(u); told == 0 || t.places(told, worth) > 0 {
		return half(worth) - told
	}
	return 0
}

// Add notes that more was told of a URL.
func (t *Reports) Add(u ID, more float32) {
	*t.worths.At(u) = uint16(math.Float32bits(half(t.Worth(u)+more)) >> 16)
}

// half is the nearest number that half of a float32 can be.
func half(x float32) float32 {
	return math.Float32frombits((math.Float32bits(max(0, x)) + 1<<15) &^ (1<<16 - 1))
}

// Bytes is how much memory it takes.
func (t *Reports) Bytes() int64 { return int64(t.worths.Room()) * 2 }

// budgetPerLink is how many URLs may be told again for each link to another node's URL, in the mean; maxBudget, how many
// at once that were not before.
const (
	budgetPerLink = 0.25
	maxBudget     = 1 << 17
)

// AddBudget notes how many links to others' URLs a page has.
func (t *Reports) AddBudget(links int) {
	t.budget = min(t.budget+budgetPerLink*float64(links), maxBudget)
}

// A Census has how many of the URLs that were told have changed by how much.
type Histogram struct{ at [mostPlaces + 1]int }

// mostPlaces is from which on changes are all the same.
const mostPlaces = 20 * Steps

// Count takes a URL in, the links to which are worth so much by now.
func (t *Reports) Count(c *Histogram, u ID, worth float32) {
	if told := t.Worth(u); told > 0 {
		c.at[t.places(told, worth)]++
	}
}

// Threshold says which URLs are to be told again: those that have changed by so many places at the least, as many as may
// be told. There need be none.
func (t *Reports) Threshold(c *Histogram) (places int) {
	for places = len(c.at); places > 1 && t.budget >= float64(c.at[places-1]); places-- {
		t.budget -= float64(c.at[places-1])
	}
	return places
}

// Changed reports whether the links to a URL are worth so much by now that its place changes by so many at the least.
func (t *Reports) Changed(u ID, worth float32, places int) bool {
	told := t.Worth(u)
	return told > 0 && t.places(told, worth) >= places
}

// places is by how many places a URL's importance changes with what links are worth, as far as this node knows.
func (t *Reports) places(was, is float32) int {
	if d := is - was; d > -(was+t.unit)/Steps && d < (was+t.unit)/Steps { // by far the most
		return 0
	}
	places := Steps * math.Abs(math.Log2(float64(is+t.unit)/float64(was+t.unit)))
	return int(max(1, min(places, mostPlaces)))
}
