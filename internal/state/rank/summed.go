package rank

// Summed is what orders have in common whose importance is a sum over links, in 4 bytes a URL: all methods but Fetched,
// Share and Importance.
type Summed struct{ sums Vector[float32] }

// At is where the sum of a URL is.
func (s *Summed) At(u ID) *float32 { return s.sums.At(u) }

// Grow makes room.
func (s *Summed) Grow(n int) { s.sums.Grow(n) }

// AddExternal adds what links from elsewhere are worth.
func (s *Summed) AddExternal(to ID, worth float32) { *s.At(to) += worth }

// Worth is the sum.
func (s *Summed) Worth(u ID) float32 { return *s.At(u) }

// Unit is 1.
func (*Summed) Unit() float32 { return 1 }
