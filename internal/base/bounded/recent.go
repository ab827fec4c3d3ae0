// Package bounded implements containers that use bounded memory, or a few bytes a name, however many host names they
// meet.
package bounded

import "iter"

// A Recent is a map that keeps what was used lately, in two generations of so many entries at most. It serves where
// forgetting costs little.
type Recent[K comparable, V any] struct {
	max        int
	young, old map[K]V
}

// NewRecent makes one that keeps the last most entries, and up to as many before them.
func NewRecent[K comparable, V any](most int) *Recent[K, V] {
	return &Recent[K, V]{max: most, young: map[K]V{}}
}

// Get returns what a key has, if it was used lately.
func (r *Recent[K, V]) Get(k K) (V, bool) {
	v, ok := r.young[k]
	if ok {
		return v, true
	}
	if v, ok = r.old[k]; ok {
		delete(r.old, k)
		r.Put(k, v)
	}
	return v, ok
}

// Put gives a key a value.
func (r *Recent[K, V]) Put(k K, v V) {
	delete(r.old, k)
	r.young[k] = v
	if len(r.young) > r.max {
		r.old, r.young = r.young, map[K]V{}
	}
}

// Delete forgets a key.
func (r *Recent[K, V]) Delete(k K) {
	delete(r.young, k)
	delete(r.old, k)
}

// All yields the entries, those that were used longest ago first.
func (r *Recent[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, m := range []map[K]V{r.old, r.young} {
			for k, v := range m {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}

// Len is how many entries there are.
func (r *Recent[K, V]) Len() int { return len(r.young) + len(r.old) }
