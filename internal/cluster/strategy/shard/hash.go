package shard

import (
	"github.com/cespare/xxhash/v2"

	"kumo/internal/cluster/strategy"
)

// hashes are the two independent functions of a crawl. One pass over the name gives 64 bits; two keys make two hashes
// of them. Names differ in few bits, so a sum of host and node, or FNV over both, would be far from even; what mix
// returns is.
type hashes struct{ first, second uint64 }

func newHashes(seed uint64) hashes {
	return hashes{first: mix(seed ^ 0x6b756d6f2d736c6f), second: mix(seed ^ 0x6b756d6f2d6e6f64)}
}

// of returns the two hashes of a host's key.
func (h hashes) of(key string) (first, second uint64) {
	x := xxhash.Sum64String(key)
	return mix(x ^ h.first), mix(x ^ h.second)
}

// node is a node's hash, to be combined with hosts'.
func (h hashes) node(n strategy.Node) uint64 { return mix(xxhash.Sum64String(string(n)) + h.second) }

// mix is the finalizer of SplitMix64 (Stafford's variant 13): each bit of x changes each bit of the result with a
// chance of a half.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
