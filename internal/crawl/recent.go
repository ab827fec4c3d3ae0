package crawl

// A recent is a map that keeps what was used lately, of two generations with so many entries at most. It serves where forgetting costs
// little.
type recent[K comparable, V any] struct {
	max        int
	young, old map[K]V
}

func newRecent[K comparable, V any](most int) *recent[K, V] {
	return &recent[K, V]{max: most, young: map[K]V{}}
}

func (r *recent[K, V]) get(k K) (V, bool) {
	v, ok := r.young[k]
	if ok {
		return v, true
	}
	if v, ok = r.old[k]; ok {
		delete(r.old, k)
		r.put(k, v)
	}
	return v, ok
}

func (r *recent[K, V]) put(k K, v V) {
	delete(r.old, k)
	r.young[k] = v
	if len(r.young) > r.max {
		r.old, r.young = r.young, map[K]V{}
	}
}

func (r *recent[K, V]) drop(k K) {
	delete(r.young, k)
	delete(r.old, k)
}
