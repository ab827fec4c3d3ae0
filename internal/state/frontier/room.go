package frontier

import "math/bits"

// A bufferPool provides buffers for the ends of buckets, and reuses them.
type bufferPool struct {
	used, spare int64
	pieces      [26][][]byte // by the logarithm of their capacity
}

const leastPiece = 7 // 128 bytes

// grow returns a buffer with the contents of b and space for more bytes.
func (r *bufferPool) grow(b []byte, more int) []byte {
	if len(b)+more <= cap(b) {
		return b
	}
	class := max(leastPiece, bits.Len(uint(max(len(b)+more, 2*cap(b))-1)))
	if class >= len(r.pieces) {
		class = len(r.pieces) - 1
	}
	var piece []byte
	if free := r.pieces[class]; len(free) > 0 && len(b)+more <= 1<<class {
		last := len(free) - 1
		piece, free[last] = free[last], nil
		r.pieces[class] = free[:last]
		r.spare -= int64(cap(piece))
	} else {
		piece = make([]byte, 0, max(1<<class, len(b)+more))
	}
	r.used += int64(cap(piece))
	piece = append(piece, b...)
	r.free(b)
	return piece
}

// free returns a buffer to the pool. The pool keeps at most a quarter of the bytes in use.
func (r *bufferPool) free(b []byte) {
	n := int64(cap(b))
	r.used -= n
	if class := bits.Len(uint(n)) - 1; n > 0 && n == 1<<class && class < len(r.pieces) && 4*(r.spare+n) <= r.used {
		r.spare += n
		r.pieces[class] = append(r.pieces[class], b[:0])
	}
}
