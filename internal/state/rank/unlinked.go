package rank

// Unlinked implements orders that ignore links, except Importance.
type Unlinked struct{}

// Grow does nothing.
func (Unlinked) Grow(int) {}

// Fetched does nothing.
func (Unlinked) Fetched(*Page) {}

// Share returns 0.
func (Unlinked) Share(ID, int) float32 { return 0 }

// AddExternal does nothing.
func (Unlinked) AddExternal(ID, float32) {}

// Unit returns 1.
func (Unlinked) Unit() float32 { return 1 }

// Worth returns 0.
func (Unlinked) Worth(ID) float32 { return 0 }
