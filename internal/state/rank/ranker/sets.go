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

// expected is the worth of links to others' URLs from pages that were not added with Fetched yet. Without it, two
// concurrent pages would count only once in reports.
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

// recentContributions are the contributions added recently; duplicates are dropped.
type recentContributions struct {
	*bounded.Recent[contributionKey, struct{}]
}

type contributionKey struct {
	to  rank.ID
	tag uint32
}

// newRecentContributions returns an empty set. Batches in transit have some thousand contributions per node.
func newRecentContributions() recentContributions {
	return recentContributions{bounded.NewRecent[contributionKey, struct{}](1 << 17)}
}

// add adds a contribution, and reports whether it is new, according to its tag.
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
