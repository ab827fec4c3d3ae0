package verify

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

func TestClaimsAreSortedWhereverTheyLie(t *testing.T) {
	for _, room := range []int{0, 20_000, 600} { // in memory; a few runs; runs of runs
		t.Run(fmt.Sprintf("%d bytes", room), func(t *testing.T) { sortsRandomClaims(t, room) })
	}
}

func sortsRandomClaims(t *testing.T, room int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	parent := t.TempDir()
	s := newSorter(parent, room)
	var want []string
	for range 3000 {
		url, k, body := fmt.Sprintf("http://h%d/%d", dice.IntN(20), dice.IntN(50)), kind(1+dice.IntN(4)),
			[]byte(fmt.Sprint(dice.IntN(9)))
		want = append(want, fmt.Sprintf("%s %d %s", url, k, body))
		if err := s.add(url, k, body); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	src, err := s.sorted()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		c, err := src.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %d %s", c.url, c.kind, c.body))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d claims came back of %d, or not in order", len(got), len(want))
	}
	if err := errors.Join(src.Close(), s.close()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestFactsComeBack(t *testing.T) {
	for _, f := range []fact{
		{},
		{At: 7, File: -1, Offset: 9, Length: 1 << 40, Time: 1_700_000_000_000_000, Status: -404,
			Flags: flagWords | flagDigests, ID: 3},
		{File: 2, Words: 1, Digest: digest{1, 2, 3}},
		{Digest: digest{19: 9}},
	} {
		if got := readFact(f.append(nil)); got != f {
			t.Errorf("%+v came back as %+v", f, got)
		}
	}
}
