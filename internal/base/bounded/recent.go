// Package bounded implements containers for host names whose memory is bounded or a few bytes per name.
package bounded

import "iter"

// A Recent is a map of recently used entries, in two generations of at most max entries each. It suits data that is
// cheap to lose.
type Recent[K comparable, V any] struct {
	max        int
	young, old map[K]V
}

// NewRecent returns a map that keeps the most recently used entries: at least most, at most twice as many.
func NewRecent[K comparable, V any](most int) *Recent[K, V] {
	return &Recent[K, V]{max: most, young: map[K]V{}}
}

// Get returns the value of a key and marks it as recently used.
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

// Put sets the value of a key.
func (r *Recent[K, V]) Put(k K, v V) {
	delete(r.old, k)
	r.young[k] = v
	if len(r.young) > r.max {
		r.old, r.young = r.young, map[K]V{}
	}
}

// Delete removes a key.
func (r *Recent[K, V]) Delete(k K) {
	delete(r.young, k)
	delete(r.old, k)
}

// All yields all entries, the less recently used generation first.
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

// Len returns the number of entries.
func (r *Recent[K, V]) Len() int { return len(r.young) + len(r.old) }
