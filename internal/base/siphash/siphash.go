// Package siphash implements the keyed hash function SipHash-2-4.
//
// Without the key, nobody can predict hash values or construct collisions. So the hash suits keys that strangers
// choose, such as hosts and URLs.
//
// Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.
package siphash

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// A Key is the secret key of the hash function. A key gives the same hashes on every machine.
type Key [16]byte

// SumString returns the hash of a string.
func (k *Key) SumString(s string) uint64 { return k.Sum(unsafe.Slice(unsafe.StringData(s), len(s))) }

// Sum returns the hash of bytes.
func (k *Key) Sum(b []byte) uint64 {
	k0, k1 := binary.LittleEndian.Uint64(k[:8]), binary.LittleEndian.Uint64(k[8:])
	v0, v1 := k0^0x736f6d6570736575, k1^0x646f72616e646f6d
	v2, v3 := k0^0x6c7967656e657261, k1^0x7465646279746573
	last := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		m := binary.LittleEndian.Uint64(b)
		v3 ^= m
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
		v0 ^= m
	}
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	v3 ^= last
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	for range 4 {
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
	}
	return v0 ^ v1 ^ v2 ^ v3
}

func round(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v2 += v3
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 = bits.RotateLeft64(v0, 32) + v3
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	return v0, v1, bits.RotateLeft64(v2, 32), v3
}
