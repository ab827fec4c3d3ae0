package xor

import (
	"crypto/sha256"
	"math/big"
	"strings"
	"testing"
	"testing/quick"
)

func number(id ID) *big.Int { return new(big.Int).SetBytes(id[:]) }

func TestArithmeticIsThatOfNumbers(t *testing.T) {
	err := quick.Check(func(a, b, to ID, same uint8) bool {
		copy(b[:], a[:min(int(same), Size)]) // random ids usually differ in their first bits
		distance := new(big.Int).Xor(number(a), number(b))
		da, db := number(a.Distance(to)), number(b.Distance(to))
		return number(a.Distance(b)).Cmp(distance) == 0 &&
			a.FirstDiff(b) == distance.BitLen()-1 &&
			Compare(a, b, to) == da.Cmp(db) &&
			a.Less(b) == (number(a).Cmp(number(b)) < 0)
	}, &quick.Config{MaxCount: 10000})
	if err != nil {
		t.Error(err)
	}
}

func TestBits(t *testing.T) {
	id := Of("kumo")
	for i := range Bits {
		if got, want := uint(id.Bit(i)), number(id).Bit(i); got != want {
			t.Errorf("bit %d is %d, want %d", i, got, want)
		}
	}
}

func TestTruncatedIDsKeepTheirFirstBits(t *testing.T) {
	id := Of("kumo")
	for width := range Bits + 1 {
		got := id.Truncate(width)
		low := uint(Bits - width)
		want := new(big.Int).Lsh(new(big.Int).Rsh(number(id), low), low)
		if number(got).Cmp(want) != 0 {
			t.Errorf("%d bits of %x are %x", width, id, got)
		}
	}
}

func TestPartsAreToldApart(t *testing.T) {
	if Of("ab", "c") == Of("a", "bc") || Of("ab") == Of("ab", "") {
		t.Error("different parts have one id")
	}
}

func TestIDsAreHashesOfPartsWithTheirLengths(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, parts := range [][]string{{"node", "kumo"}, {}, {""}, {long, long}} {
		h := sha256.New()
		for _, p := range parts {
			h.Write([]byte{0, 0, 0, 0, 0, 0, byte(len(p) >> 8), byte(len(p))})
			h.Write([]byte(p))
		}
		if got := Of(parts...); got != ID(h.Sum(nil)) {
			t.Errorf("%.20q: %x", parts, got)
		}
	}
}

func BenchmarkOf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Of("node", "12D3KooWLongEnoughToBeAPeersName~1")
	}
}

func BenchmarkCompare(b *testing.B) {
	x, y, to := Of("x"), Of("y"), Of("to")
	for b.Loop() {
		Compare(x, y, to)
	}
}
