package synthweb

import (
	"math/bits"
	"sync/atomic"
)

// A bitset is a set of small numbers. Concurrent calls of add are allowed.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

// add adds i and reports whether it was already in the set.
func (b bitset) add(i int) (had bool) {
	bit := uint64(1) << (i & 63)
	return atomic.OrUint64(&b[i>>6], bit)&bit != 0
}

func (b bitset) remove(i int) { atomic.AndUint64(&b[i>>6], ^(uint64(1) << (i & 63))) }

func (b bitset) has(i int) bool { return atomic.LoadUint64(&b[i>>6])>>(i&63)&1 != 0 }

func (b bitset) clear() {
	for i := range b {
		atomic.StoreUint64(&b[i], 0)
	}
}

// each calls f with the numbers in the words that pick returns, in order, until f returns false.
func (b bitset) each(pick func(word int) uint64, f func(i int) bool) {
	for at := range b {
		for word := pick(at); word != 0; word &= word - 1 {
			if !f(at<<6 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

func (b bitset) word(at int) uint64 { return atomic.LoadUint64(&b[at]) }
