package rank

import "math"

// Told is what a node has told others about the worth of links to their URLs, in 2 bytes a URL: all at first, then
// differences that move the URL's place. Worth follows the ranks of pages, so it changes without new links, too: see
// [Told.Choose].
type Told struct {
	unit   float32
	worths Vector[uint16] // the first half of a float32
	spare  float64        // URLs that may be told again
}

// NewTold is what is told by an order of which unit is [Order.Unit]: nothing yet.
func NewTold(unit float32) *Told { return &Told{unit: unit} }

// Grow makes room for all numbers below n.
func (t *Told) Grow(n int) { t.worths.Grow(n) }

// Worth is what was told of a URL; 0: nothing was.
func (t *Told) Worth(u ID) float32 { return math.Float32frombits(uint32(*t.worths.At(u)) << 16) }

// More is what is to be told of a URL, the links to which are worth so much by now, beyond what was; below 0 if it is
// less. It is 0 while the URL's importance differs by less than a place for it, whatever other nodes know of it.
func (t *Told) More(u ID, worth float32) float32 {
	if told := t.Worth(u); told == 0 || t.places(told, worth) > 0 {
		return half(worth) - told
	}
	return 0
}

// Add notes that more was told of a URL.
func (t *Told) Add(u ID, more float32) {
	*t.worths.At(u) = uint16(math.Float32bits(half(t.Worth(u)+more)) >> 16)
}

// half is the nearest number that half of a float32 can be.
func half(x float32) float32 {
	return math.Float32frombits((math.Float32bits(max(0, x)) + 1<<15) &^ (1<<16 - 1))
}

// Bytes is how much memory it takes.
func (t *Told) Bytes() int64 { return int64(t.worths.Room()) * 2 }

// againShare is how many URLs may be told again for each link to another node's URL, in the mean; mostSpare, how many
// at once that were not before.
const (
	againShare = 0.25
	mostSpare  = 1 << 17
)

// Found notes how many links to others' URLs a page has.
func (t *Told) Found(links int) { t.spare = min(t.spare+againShare*float64(links), mostSpare) }

// A Census has how many of the URLs that were told have changed by how much.
type Census struct{ at [mostPlaces + 1]int }

// mostPlaces is from which on changes are all the same.
const mostPlaces = 20 * Steps

// Count takes a URL in, the links to which are worth so much by now.
func (t *Told) Count(c *Census, u ID, worth float32) {
	if told := t.Worth(u); told > 0 {
		c.at[t.places(told, worth)]++
	}
}

// Choose says which URLs are to be told again: those that have changed by so many places at the least, as many as may
// be told. There need be none.
func (t *Told) Choose(c *Census) (places int) {
	for places = len(c.at); places > 1 && t.spare >= float64(c.at[places-1]); places-- {
		t.spare -= float64(c.at[places-1])
	}
	return places
}

// Changed reports whether the links to a URL are worth so much by now that its place changes by so many at the least.
func (t *Told) Changed(u ID, worth float32, places int) bool {
	told := t.Worth(u)
	return told > 0 && t.places(told, worth) >= places
}

// places is by how many places a URL's importance changes with what links are worth, as far as this node knows.
func (t *Told) places(was, is float32) int {
	if d := is - was; d > -(was+t.unit)/Steps && d < (was+t.unit)/Steps { // by far the most
		return 0
	}
	places := Steps * math.Abs(math.Log2(float64(is+t.unit)/float64(was+t.unit)))
	return int(max(1, min(places, mostPlaces)))
}
