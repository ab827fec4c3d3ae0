package crawl

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"kumo/internal/base/bounded"
	"kumo/internal/base/siphash"
	"kumo/internal/content/traps"
)

// vainURLs holds the latest URLs found on pages with duplicate content ("in vain"). A link from any other page shows that
// a URL is not part of a trap. Checkpoints include the set; after a crash, links found since the last one are lost.
type vainURLs struct {
	any atomic.Bool

	mu   sync.Mutex
	urls *bounded.Recent[uint64, vainState] // by their hashes
}

type vainState byte

const (
	vainPending vainState = iota // in the queue
	vainLinked                   // likewise, and a page links to it that is not in vain
	vainCut                      // left out
	vainStates
)

// maxVainURLs is how many vainURLs are remembered at least, in 20 bytes each.
const maxVainURLs = 1 << 16

// vainHash is the same in every run. Whoever finds two URLs with one hash gains no more than by a link.
var vainHash siphash.Key

// result adds a URL unless it is known already.
func (v *vainURLs) found(url string) {
	key := vainHash.SumString(url)
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, is := v.urls.Get(key); !is {
		v.urls.Put(key, vainPending)
		v.any.Store(true)
	}
}

// beginCommit says that a URL is left out.
func (v *vainURLs) cut(url string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.urls.Put(vainHash.SumString(url), vainCut)
	v.any.Store(true)
}

// rankedLink adds a link from a page that is not in vain. It reports whether the URL was left out and has to be queued again.
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

// isLinked reports whether a page that is not in vain links to a pending URL.
func (v *vainURLs) isLinked(url string) bool {
	if !v.any.Load() {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	state, is := v.urls.Get(vainHash.SumString(url))
	return is && state == vainLinked
}

// state is what a checkpoint has of them: a hash and a state each, nine bytes.
func (v *vainURLs) state() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b []byte
	for key, state := range v.urls.All() {
		b = append(binary.LittleEndian.AppendUint64(b, key), byte(state))
	}
	return b
}

// newVainURLs makes a set with what a checkpoint has. A nil state is nothing.
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
