package siphash

import "testing"

// TestSum tests the vectors of SipHash-2-4's authors. Hashes are stored in the state of crawls.
func TestSum(t *testing.T) {
	var key Key
	var in []byte
	for i := range key {
		key[i] = byte(i)
	}
	want := []uint64{0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d, 0xcf2794e0277187b7,
		0x18765564cd99a68d,
		0xcbc9466e58fee3ce, 0xab0200f58b01d137, 0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3,
		0xf4b32f46226bada7, 0x751e8fbc860ee5fb,
		0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5}
	for i, w := range want {
		if got := key.Sum(in); got != w {
			t.Errorf("%d bytes: %#x, want %#x", i, got, w)
		}
		in = append(in, byte(i))
	}
}
