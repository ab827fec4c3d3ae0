package overlay

import (
	"hash/fnv"

	"kumo/internal/base/xor"
)

// Bounds of a Contact. Messages that exceed them are refused; addresses from the transport beyond them are dropped.
const (
	MaxName  = 255 // bytes of a node's name
	MaxAddrs = 8   // addresses
	MaxAddr  = 255 // bytes of an address
)

// A Contact is a node and its addresses. Only the transport interprets addresses; one may mean a relay, for example.
// The slice must not be modified after it was passed to this package.
type Contact struct {
	Node  string
	ID    xor.ID // IDOf(Node); recomputed for each Contact passed to this package
	Addrs []string
}

// IDOf returns the id of a node.
func IDOf(node string) xor.ID { return xor.Of("node", node) }

// digestAddrs returns a hash of addresses that does not depend on their order; 0 for none.
func digestAddrs(addrs []string) (sum uint64) {
	for _, a := range addrs {
		h := fnv.New64a()
		h.Write([]byte(a))
		sum += h.Sum64()
	}
	return sum
}

// clean removes addresses that exceed the bounds.
func clean(addrs []string) []string {
	good := 0
	for good < len(addrs) && good < MaxAddrs && len(addrs[good]) <= MaxAddr {
		good++
	}
	if good == len(addrs) {
		return addrs
	}
	kept := append([]string(nil), addrs[:good]...)
	for _, a := range addrs[good:] {
		if len(a) <= MaxAddr && len(kept) < MaxAddrs {
			kept = append(kept, a)
		}
	}
	return kept
}
