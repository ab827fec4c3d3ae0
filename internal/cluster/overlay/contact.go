package overlay

import (
	"hash/fnv"

	"kumo/internal/base/xor"
)

// Bounds of a Contact. What is beyond them is refused in a message, and cut off where the transport tells it.
const (
	MaxName  = 255 // bytes of a node's name
	MaxAddrs = 8   // addresses
	MaxAddr  = 255 // bytes of an address
)

// A Contact is a node and where it may be reached. Its addresses mean something to the transport alone: that a node can
// be reached only by a relay, say. They are not changed once they were handed over.
type Contact struct {
	Node  string
	ID    xor.ID // IDOf(Node): where a Contact is given to this package it is computed anew
	Addrs []string
}

// IDOf is the id of a node.
func IDOf(node string) xor.ID { return xor.Of("node", node) }

// places is a digest of addresses, whatever their order; 0 of none.
func digestAddrs(addrs []string) (sum uint64) {
	for _, a := range addrs {
		h := fnv.New64a()
		h.Write([]byte(a))
		sum += h.Sum64()
	}
	return sum
}

// clean cuts off addresses that are beyond the bounds.
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
