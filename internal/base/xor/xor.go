// Package xor implements Kademlia's 256-bit ids of nodes and keys, and the XOR metric between them.
//
// The distance of two ids is their exclusive or, read as a number.
//
// Source: Maymounkov and Mazières, "Kademlia: A Peer-to-peer Information System Based on the XOR Metric", 2002.
package xor

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// Size is an id's length in bytes, Bits in bits.
const (
	Size = sha256.Size
	Bits = 8 * Size
)

// An ID is a point of the space, its highest bit first.
type ID [Size]byte

// Of is the id of what the parts say together, SHA-256 of each with its length before it: no two lists of parts are
// alike.
func Of(parts ...string) ID {
	all := make([]byte, 0, 256) // on the stack, where it is enough
	for _, p := range parts {
		all = binary.BigEndian.AppendUint64(all, uint64(len(p)))
		all = append(all, p...)
	}
	return sha256.Sum256(all)
}

// Truncate keeps the first width bits and clears the others: a space so small that tests can go through all of it.
func (a ID) Truncate(width int) ID {
	for i := range a {
		switch left := width - 8*i; {
		case left <= 0:
			a[i] = 0
		case left < 8:
			a[i] &= 0xff << (8 - left)
		}
	}
	return a
}

// Distance is how far two ids are from each other, a number with its highest byte first.
func (a ID) Distance(b ID) ID {
	for i := range a {
		a[i] ^= b[i]
	}
	return a
}

// Set sets the bit of an index, as FirstDiff counts them.
func (a ID) Set(index int) ID {
	a[(Bits-1-index)/8] |= 1 << (index % 8)
	return a
}

// And has the bits that both have.
func (a ID) And(b ID) ID {
	for i := range a {
		a[i] &= b[i]
	}
	return a
}

// FirstDiff is the index of the highest bit in which two ids differ, Bits-1 for the first of an id and 0 for its last:
// floor(log2(a xor b)), the number of the k-bucket of a in which b lies. It is -1 where they are equal.
func (a ID) FirstDiff(b ID) int {
	for i := range a {
		if d := a[i] ^ b[i]; d != 0 {
			return Bits - 8*i - bits.LeadingZeros8(d) - 1
		}
	}
	return -1
}

// Bit is the id's bit of an index, as FirstDiff counts them.
func (a ID) Bit(index int) byte {
	return a[(Bits-1-index)/8] >> (index % 8) & 1
}

// Compare says which of two ids is nearer to a third: -1 for a, 1 for b, 0 where a and b are the same.
func Compare(a, b, to ID) int {
	for i := range to {
		if x, y := a[i]^to[i], b[i]^to[i]; x != y {
			if x < y {
				return -1
			}
			return 1
		}
	}
	return 0
}

// Less orders ids as numbers.
func (a ID) Less(b ID) bool { return bytes.Compare(a[:], b[:]) < 0 }

// String is the id's first 8 bytes in hexadecimal digits, enough to tell ids apart in a log.
func (a ID) String() string { return hex.EncodeToString(a[:8]) }
