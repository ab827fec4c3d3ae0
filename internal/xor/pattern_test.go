package xor

import (
	"testing"
	"testing/quick"
)

// first is an id of one byte, and of nothing else.
func first(b byte) ID { return ID{b} }

func TestPatternsOfOneByte(t *testing.T) {
	for n := range 9 {
		for v := range 256 {
			p := Prefix(first(byte(v)), n)
			for k := range 256 {
				want := v>>(8-n) == k>>(8-n)
				if got := p.Contains(first(byte(k))); got != want {
					t.Fatalf("the first %d bits of %08b and %08b are alike: %v", n, v, k, got)
				}
				between := !first(byte(k)).Less(p.First()) && !p.Last().Less(first(byte(k)))
				if between != want {
					t.Fatalf("%08b between %x and %x: %v", k, p.First(), p.Last(), between)
				}
			}
			if p.Len() != n || !p.Whole() {
				t.Fatalf("a prefix of %d bits has %d, whole: %v", n, p.Len(), p.Whole())
			}
		}
	}
}

func TestListsArePrefixes(t *testing.T) {
	err := quick.Check(func(id, key ID, same uint8) bool {
		copy(key[:], id[:min(int(same), Size)])
		for index := -1; index < Bits; index++ {
			if List(id, index).Contains(key) != (id.FirstDiff(key) == index) {
				return false
			}
		}
		return true
	}, nil)
	if err != nil {
		t.Error(err)
	}
}

func TestPatternsWithABit(t *testing.T) {
	err := quick.Check(func(id, key ID, n, at uint8) bool {
		index := int(at) % (Bits - int(n)) // behind the prefix
		for value := range byte(2) {
			p := Prefix(id, int(n)).With(index, value)
			if p.Contains(key) != (Prefix(id, int(n)).Contains(key) && key.Bit(index) == value) {
				return false
			}
			next := index == Bits-1-int(n)
			if p.Whole() != next || next && p.Len() != int(n)+1 || !next && p.Len() != int(n) {
				return false
			}
		}
		return true
	}, nil)
	if err != nil {
		t.Error(err)
	}
}
