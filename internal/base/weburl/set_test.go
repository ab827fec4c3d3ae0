package weburl

import (
	"runtime"
	"strconv"
	"sync"
	"testing"
)

func TestSetHasWhatWasAdded(t *testing.T) {
	const n = 100_000
	s := NewSet()
	for i := range n {
		if name := "h" + strconv.Itoa(i) + ".test"; !s.Add(name) || s.Add(name) {
			t.Fatalf("%s: is news once", name)
		}
	}
	for i := range 2 * n {
		if name := "h" + strconv.Itoa(i) + ".test"; s.Has(name) != (i < n) {
			t.Fatalf("%s: has %v", name, !(i < n))
		}
	}
	if s.Len() != n {
		t.Errorf("%d entries, not %d", s.Len(), n)
	}
}

// A reader concurrent with writers finds everything added before its read.
func TestSetWhileItGrows(t *testing.T) {
	s := NewSet()
	var all sync.WaitGroup
	var news [4]int
	for g := range news {
		all.Go(func() {
			for i := range 20_000 {
				if s.Add(strconv.Itoa(i)) {
					news[g]++
				}
				if !s.Has(strconv.Itoa(i)) || !s.Has(strconv.Itoa(i/2)) {
					t.Errorf("%d is missing", i)
					return
				}
			}
		})
	}
	all.Wait()
	if sum := news[0] + news[1] + news[2] + news[3]; sum != 20_000 {
		t.Errorf("%d of 20000 were news to somebody", sum)
	}
}

// A million hosts in scope take the memory of a million hashes, not of their names.
func TestScopeOfManySeedsIsSmall(t *testing.T) {
	const n = 1_000_000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	s := NewScope(ScopeHost)
	for i := range n {
		u, err := Parse("https://host-with-a-name-" + strconv.Itoa(i) + ".example/")
		if err != nil {
			t.Fatal(err)
		}
		s.AddSeed(u)
	}
	if used := int64(heap() - before); used > 20*n {
		t.Errorf("%d bytes a seed, at most 20 are wanted", used/n)
	}
	in, _ := Parse("http://host-with-a-name-999999.example/x")
	out, _ := Parse("http://host-with-a-name-1000000.example/x")
	if !s.Judge(in).In || s.Judge(out).In {
		t.Error("the scope is wrong")
	}
}
