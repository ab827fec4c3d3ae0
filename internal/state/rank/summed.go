package rank

// Summed implements orders whose importance is a sum over links, in 4 bytes per URL, except Fetched, Share and
// Importance.
type Summed struct{ sums Vector[float32] }

// At returns the sum of a URL.
func (s *Summed) At(u ID) *float32 { return s.sums.At(u) }

// Grow makes room for all numbers below n.
func (s *Summed) Grow(n int) { s.sums.Grow(n) }

// AddExternal adds the worth of links from elsewhere.
func (s *Summed) AddExternal(to ID, worth float32) { *s.At(to) += worth }

// Worth returns the sum.
func (s *Summed) Worth(u ID) float32 { return *s.At(u) }

// Unit returns 1.
func (*Summed) Unit() float32 { return 1 }
