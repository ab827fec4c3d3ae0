package rank

// Unlinked is what an order has in common with others that do not care for links: all methods but Importance.
type Unlinked struct{}

// Grow does nothing.
func (Unlinked) Grow(int) {}

// Fetched does nothing.
func (Unlinked) Fetched(*Page) {}

// Share is 0.
func (Unlinked) Share(ID, int) float32 { return 0 }

// AddExternal does nothing.
func (Unlinked) AddExternal(ID, float32) {}

// Unit is 1.
func (Unlinked) Unit() float32 { return 1 }

// Worth is 0.
func (Unlinked) Worth(ID) float32 { return 0 }
