package ranker

import (
	"kumo/internal/base/bounded"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/linklog"
)

type bits struct{ rank.Vector[uint8] }

func (b *bits) grow(n int) { b.Grow(n/8 + 1) }

func (b *bits) has(u rank.ID) bool { return int(u/8) < b.Len() && *b.At(u / 8)>>(u%8)&1 == 1 }

func (b *bits) set(u rank.ID, is bool) {
	if at, bit := b.At(u/8), uint8(1)<<(u%8); is {
		*at |= bit
	} else {
		*at &^= bit
	}
}

// Expected is what links to others' URLs are worth of pages that are not told by Fetched yet: without it two pages that
// come at the same time would be one for who is told.
type expected map[rank.ID]future

type future struct {
	worth float32
	links int
}

func (e expected) add(u rank.ID, share float32) {
	if f := e[u]; share != 0 {
		e[u] = future{f.worth + share, f.links + 1}
	}
}

func (e expected) remove(u rank.ID, share float32) {
	switch f := e[u]; {
	case share == 0:
	case f.links > 1:
		e[u] = future{f.worth - share, f.links - 1}
	default:
		delete(e, u)
	}
}

// Taken are gifts that were taken: one that comes again is dropped.
type taken struct {
	*bounded.Recent[giftKey, struct{}]
}

type giftKey struct {
	to  rank.ID
	tag uint32
}

// newTaken remembers some gifts at the least. Batches on their way have some thousands for each node.
func newTaken() taken { return taken{bounded.NewRecent[giftKey, struct{}](1 << 17)} }

// add reports whether a gift was not taken before, as far as its tag says.
func (t taken) add(g linklog.Gift) bool {
	if g.Tag == 0 {
		return true
	}
	key := giftKey{g.To, g.Tag}
	_, has := t.Get(key)
	if !has {
		t.Put(key, struct{}{})
	}
	return !has
}
