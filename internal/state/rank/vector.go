package rank

// A Vector has a number for each URL, and grows without copying: in pieces of 65,536.
type Vector[T any] struct {
	pieces []*[pieceLen]T
	n      int
}

const (
	pieceBits = 16
	pieceLen  = 1 << pieceBits
)

// Grow makes it n numbers long, if it is shorter. What comes to it is 0.
func (v *Vector[T]) Grow(n int) {
	for len(v.pieces)<<pieceBits < n {
		v.pieces = append(v.pieces, new([pieceLen]T))
	}
	v.n = max(v.n, n)
}

// Len is its length.
func (v *Vector[T]) Len() int { return v.n }

// At is where a URL's number is.
func (v *Vector[T]) At(u ID) *T { return &v.pieces[u>>pieceBits][u%pieceLen] }

// Clear makes all numbers 0.
func (v *Vector[T]) Clear() {
	for _, p := range v.pieces {
		clear(p[:])
	}
}

// Room is how many numbers there is room for.
func (v *Vector[T]) Room() int { return len(v.pieces) << pieceBits }
