package frontier

import (
	"slices"
	"testing"

	"kumo/internal/rank"
)

// newRankedDuel lets ranks change, as a fakeRanker has them.
func newRankedDuel(t *testing.T, seed uint64, cfg Config) *duel {
	r := newFakeRanker()
	cfg.Ranker = r
	d := newDuel(t, seed, cfg)
	d.ranker, d.loose = r, true // hosts go by rank, not by their times
	rankOf := func(it *modelItem) int { return int(rankAt(r.places[r.KeyOf(it.url)], it.lift)) }
	d.m.rank, d.saved.rank = rankOf, rankOf
	return d
}

// elsewhere is another place of an item, that is not behind all that the host ever had: where the deepest is, decides
// about what comes late.
func (d *duel) elsewhere(h *modelHost, it *modelItem) rank.Place {
	return rank.Place(max(0, d.rng.IntN(h.deepest+1)+int(it.lift)))
}

// move moves some items of a host.
func (d *duel) move(key string) {
	h := d.m.host(key)
	d.f.Push(key)
	var moves []Move
	for range d.rng.IntN(6) {
		if len(h.items) > 0 {
			it := &h.items[d.rng.IntN(len(h.items))]
			moves = append(moves, d.ranker.put(it.url, d.elsewhere(h, it)))
		}
	}
	for i := range h.flying {
		moves = append(moves, d.ranker.put(h.flying[i].url, d.elsewhere(h, &h.flying[i])))
	}
	d.f.Move(key, moves)
	d.m.rerank(h)
	d.moves += len(moves)
}

// refresh gives many items of all hosts other places, which the frontier finds by itself.
func (d *duel) refresh() {
	d.ranker.generation++
	for _, h := range d.m.hosts {
		for i := range h.items {
			if d.rng.IntN(3) == 0 {
				d.ranker.put(h.items[i].url, d.elsewhere(h, &h.items[i]))
			}
		}
		d.m.rerank(h)
		h.loose = true // in blocks they stay as they were
	}
}

// afterCrash is what a new process knows: places, and none that the one before had in memory.
func (d *duel) afterCrash() {
	d.ranker.generation++
	for _, h := range d.m.hosts {
		d.m.rerank(h)
		h.loose = true
	}
}

// rankedAt is where in the model's queue a visit is. All that is in memory is in its order; of what is in blocks, some
// may not be.
func (d *duel) rankedAt(v *Visit, h *modelHost) int {
	at := slices.IndexFunc(h.items, func(it modelItem) bool { return it.url == v.URL })
	if at < 0 {
		d.t.Fatalf("%s was handed out, and does not wait", v.URL)
	}
	d.f.mu.Lock()
	defer d.f.mu.Unlock()
	hot := d.f.hosts[v.Host]
	if slices.ContainsFunc(h.items[:at], func(it modelItem) bool { return it.late }) {
		return at // what was under way when a process died is not known to have come late
	}
	switch most := 0; {
	case h.items[at].late, len(hot.links) > 0 && (h.loose || hot.ranks.renewing):
		return at
	default:
		if len(hot.links) > 0 {
			most = missedAtOnce + len(h.items)/8
		}
		if at > most {
			d.t.Fatalf("%s of rank %d was handed out before %d items that belong before it, such as %+v; %d are in memory",
				v.URL, h.items[at].rank, at, h.items[0], len(hot.waiting))
		}
	}
	d.order++
	return at
}
