package hosttable

import "kumo/internal/base/siphash"

// A Key is what makes the hash of names one that nobody else can compute.
type Key = siphash.Key

// partOf is the part of a name with hash h: its first bits. What follows on them is used within the part.
func partOf(h uint64) int { return int(h >> (64 - partBits)) }
