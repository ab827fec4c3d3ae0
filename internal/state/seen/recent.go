package seen

import "sync"

// Recent is an in-memory substitute for [Digests]. It grows with each new body.
type Recent struct {
	mu sync.Mutex
	m  map[[20]byte]Ref
}

// NewRecent returns an empty index.
func NewRecent() *Recent { return &Recent{m: make(map[[20]byte]Ref)} }

// Put adds a body.
func (r *Recent) Put(digest [20]byte, ref Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m[digest] = ref
}

// Get returns the record of a body; false if there is none.
func (r *Recent) Get(digest [20]byte) (Ref, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ref, ok := r.m[digest]
	return ref, ok, nil
}
