package bounded

import "testing"

func TestRecentKeepsWhatIsUsed(t *testing.T) {
	r := NewRecent[int, int](10)
	for i := range 1000 {
		r.Put(i, i)
		if v, ok := r.Get(0); !ok || v != 0 {
			t.Fatalf("what is used is forgotten after %d others", i)
		}
		if n := len(r.young) + len(r.old); n > 21 {
			t.Fatalf("%d entries", n)
		}
	}
	if _, ok := r.Get(1); ok {
		t.Error("what nobody used is kept")
	}
	r.Put(2, 2)
	r.Delete(2)
	if _, ok := r.Get(2); ok {
		t.Error("what was dropped is there")
	}
}
