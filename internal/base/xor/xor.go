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

// An ID is a point in the 256-bit space, big-endian.
type ID [Size]byte

// Of returns the id of a list of parts: the SHA-256 of all parts, each preceded by its length. Different lists have
// different ids.
func Of(parts ...string) ID {
	all := make([]byte, 0, 256) // on the stack unless the parts are longer
	for _, p := range parts {
		all = binary.BigEndian.AppendUint64(all, uint64(len(p)))
		all = append(all, p...)
	}
	return sha256.Sum256(all)
}

// Truncate keeps the first width bits and clears the others. Tests use it for a space that is small enough to
// enumerate.
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

// Distance returns the XOR distance of two ids as a big-endian number.
func (a ID) Distance(b ID) ID {
	for i := range a {
		a[i] ^= b[i]
	}
	return a
}

// Set returns the id with the bit at index set. Indexes count as in FirstDiff.
func (a ID) Set(index int) ID {
	a[(Bits-1-index)/8] |= 1 << (index % 8)
	return a
}

// And returns the bitwise AND of two ids.
func (a ID) And(b ID) ID {
	for i := range a {
		a[i] &= b[i]
	}
	return a
}

// FirstDiff returns the index of the highest bit in which two ids differ: Bits-1 for the first bit of an id, 0 for its
// last. This is floor(log2(a xor b)), the number of the k-bucket of a that contains b. It returns -1 if the ids are
// equal.
func (a ID) FirstDiff(b ID) int {
	for i := range a {
		if d := a[i] ^ b[i]; d != 0 {
			return Bits - 8*i - bits.LeadingZeros8(d) - 1
		}
	}
	return -1
}

// Bit returns the bit at index. Indexes count as in FirstDiff.
func (a ID) Bit(index int) byte {
	return a[(Bits-1-index)/8] >> (index % 8) & 1
}

// Compare compares the distances of a and b to a third id. It returns -1 if a is closer, 1 if b is closer, and 0 if a
// and b are equal.
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

// String returns the first 8 bytes in hexadecimal, enough to distinguish ids in a log.
func (a ID) String() string { return hex.EncodeToString(a[:8]) }
