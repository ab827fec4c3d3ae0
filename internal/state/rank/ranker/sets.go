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
type expected map[rank.ID]expectedWorth

type expectedWorth struct {
	worth float32
	links int
}

func (e expected) add(u rank.ID, share float32) {
	if f := e[u]; share != 0 {
		e[u] = expectedWorth{f.worth + share, f.links + 1}
	}
}

func (e expected) remove(u rank.ID, share float32) {
	switch f := e[u]; {
	case share == 0:
	case f.links > 1:
		e[u] = expectedWorth{f.worth - share, f.links - 1}
	default:
		delete(e, u)
	}
}

// Taken are gifts that were taken: one that comes again is dropped.
type recentContributions struct {
	*bounded.Recent[contributionKey, struct{}]
}

type contributionKey struct {
	to  rank.ID
	tag uint32
}

// newRecentContributions remembers some gifts at the least. Batches on their way have some thousands for each node.
func newRecentContributions() recentContributions {
	return recentContributions{bounded.NewRecent[contributionKey, struct{}](1 << 17)}
}

// add reports whether a gift was not taken before, as far as its tag says.
func (t recentContributions) add(g linklog.Contribution) bool {
	if g.Tag == 0 {
		return true
	}
	key := contributionKey{g.To, g.Tag}
	_, has := t.Get(key)
	if !has {
		t.Put(key, struct{}{})
	}
	return !has
}
