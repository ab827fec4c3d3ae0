package hosttable

import "kumo/internal/base/siphash"

// A Key is the secret key of the hash of host names.
type Key = siphash.Key

// partOf returns the part of a name with hash h, which is given by the first bits of h. The next bits are used within
// the part.
func partOf(h uint64) int { return int(h >> (64 - partBits)) }
