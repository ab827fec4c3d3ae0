package rank

// A Vector has a number for each URL. It grows without copying, in pieces of 65,536.
type Vector[T any] struct {
	pieces []*[pieceLen]T
	n      int
}

const (
	pieceBits = 16
	pieceLen  = 1 << pieceBits
)

// Grow extends the vector to n numbers, if it is shorter. New numbers are 0.
func (v *Vector[T]) Grow(n int) {
	for len(v.pieces)<<pieceBits < n {
		v.pieces = append(v.pieces, new([pieceLen]T))
	}
	v.n = max(v.n, n)
}

// Len returns the length.
func (v *Vector[T]) Len() int { return v.n }

// At returns a pointer to a URL's number.
func (v *Vector[T]) At(u ID) *T { return &v.pieces[u>>pieceBits][u%pieceLen] }

// Clear sets all numbers to 0.
func (v *Vector[T]) Clear() {
	for _, p := range v.pieces {
		clear(p[:])
	}
}

// Room returns the number of numbers for which memory is allocated.
func (v *Vector[T]) Room() int { return len(v.pieces) << pieceBits }
