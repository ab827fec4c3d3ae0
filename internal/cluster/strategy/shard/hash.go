package shard

import (
	"github.com/cespare/xxhash/v2"

	"kumo/internal/base/splitmix"
	"kumo/internal/cluster/strategy"
)

// hashes are the two independent hash functions of a crawl. One pass over the name yields 64 bits, and two keys derive
// two hashes from them. Names differ in few bits, so a sum of host and node hashes, or FNV over both, would be far from
// uniform; the result of Mix is uniform.
type hashes struct{ first, second uint64 }

func newHashes(seed uint64) hashes {
	return hashes{first: splitmix.Mix(seed ^ 0x6b756d6f2d736c6f), second: splitmix.Mix(seed ^ 0x6b756d6f2d6e6f64)}
}

// of returns the two hashes of a host's key.
func (h hashes) of(key string) (first, second uint64) {
	x := xxhash.Sum64String(key)
	return splitmix.Mix(x ^ h.first), splitmix.Mix(x ^ h.second)
}

// node returns a node's hash, to be combined with those of hosts.
func (h hashes) node(n strategy.Node) uint64 {
	return splitmix.Mix(xxhash.Sum64String(string(n)) + h.second)
}
