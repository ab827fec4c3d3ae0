package crawl

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"kumo/internal/base/bounded"
	"kumo/internal/base/siphash"
	"kumo/internal/content/traps"
)

// vainURLs holds the latest URLs found on pages with duplicate content ("in vain"). A link from any other page shows
// that a URL is not part of a trap. Checkpoints include the set; after a crash, URLs found since the last one are
// missing.
type vainURLs struct {
	any atomic.Bool

	mu   sync.Mutex
	urls *bounded.Recent[uint64, vainState] // by hash
}

type vainState byte

const (
	vainPending vainState = iota // in the queue
	vainLinked                   // in the queue, and linked from a page with new content
	vainCut                      // filtered
	vainStates
)

// maxVainURLs is how many URLs are kept at least, at 20 bytes each.
const maxVainURLs = 1 << 16

// vainHash is the same in every run. Someone who finds two URLs with the same hash gains no more than by a link.
var vainHash siphash.Key

// found adds a URL that is not in the set.
func (v *vainURLs) found(url string) {
	key := vainHash.SumString(url)
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, is := v.urls.Get(key); !is {
		v.urls.Put(key, vainPending)
		v.any.Store(true)
	}
}

// cut records that a URL was filtered.
func (v *vainURLs) cut(url string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.urls.Put(vainHash.SumString(url), vainCut)
	v.any.Store(true)
}

// link records a link from a page with new content. It reports whether the URL was filtered before and must be queued
// again.
func (v *vainURLs) link(url string) bool {
	if !v.any.Load() {
		return false
	}
	key := vainHash.SumString(url)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch state, is := v.urls.Get(key); {
	case is && state == vainPending:
		v.urls.Put(key, vainLinked)
	case is && state == vainCut:
		v.urls.Delete(key)
		return true
	}
	return false
}

// isLinked reports whether a page with new content links to a pending URL.
func (v *vainURLs) isLinked(url string) bool {
	if !v.any.Load() {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	state, is := v.urls.Get(vainHash.SumString(url))
	return is && state == vainLinked
}

// state encodes the set for a checkpoint: a hash and a state for each URL, nine bytes.
func (v *vainURLs) state() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b []byte
	for key, state := range v.urls.All() {
		b = append(binary.LittleEndian.AppendUint64(b, key), byte(state))
	}
	return b
}

// newVainURLs returns a set with a checkpoint's state, which may be nil.
func newVainURLs(s *traps.State) *vainURLs {
	v := &vainURLs{urls: bounded.NewRecent[uint64, vainState](maxVainURLs)}
	if s == nil {
		return v
	}
	for b := s.Vain; len(b) >= 9; b = b[9:] {
		if state := vainState(b[8]); state < vainStates {
			v.urls.Put(binary.LittleEndian.Uint64(b), state)
			v.any.Store(true)
		}
	}
	return v
}
