package crawl

import "testing"

func TestRecentKeepsWhatIsUsed(t *testing.T) {
	r := newRecent[int, int](10)
	for i := range 1000 {
		r.put(i, i)
		if v, ok := r.get(0); !ok || v != 0 {
			t.Fatalf("what is used is forgotten after %d others", i)
		}
		if n := len(r.young) + len(r.old); n > 21 {
			t.Fatalf("%d entries", n)
		}
	}
	if _, ok := r.get(1); ok {
		t.Error("what nobody used is kept")
	}
	r.put(2, 2)
	r.drop(2)
	if _, ok := r.get(2); ok {
		t.Error("what was dropped is there")
	}
}
