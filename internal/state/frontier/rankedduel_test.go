package frontier

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"time"

	"kumo/internal/state/rank"
)

// newRankedDuel returns a duel in which a fakeRanker changes ranks.
func newRankedDuel(t *testing.T, seed uint64, cfg Config) *duel {
	r := newFakeRanker()
	cfg.Ranker = r
	d := newDuel(t, seed, cfg)
	d.ranker, d.loose = r, true // hosts go by rank, not by their times
	rankOf := func(it *modelItem) int { return int(rankAt(r.places[r.KeyOf(it.url)], it.lift)) }
	d.m.rank, d.saved.rank = rankOf, rankOf
	return d
}

// elsewhere returns another place for an item, not behind the host's deepest so far, because that determines the rank
// of QueueLast items.
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

// refresh gives many items of all hosts other places, which the frontier must find itself.
func (d *duel) refresh() {
	d.ranker.generation++
	d.refreshed = true
	for _, h := range d.m.hosts {
		for i := range h.items {
			if d.rng.IntN(3) == 0 {
				d.ranker.put(h.items[i].url, d.elsewhere(h, &h.items[i]))
			}
		}
		d.m.rerank(h)
		h.loose = true // in blocks they keep their ranks
	}
}

// afterCrash sets the state of a new process: it has places, but none from the memory of the previous process.
func (d *duel) afterCrash() {
	d.ranker.generation++
	for _, h := range d.m.hosts {
		d.m.rerank(h)
		h.loose = true
	}
}

// rankedAt returns the position of a visit in the model's queue. All items in memory are in order; of those in blocks,
// some may not be.
func (d *duel) rankedAt(v *Visit, h *modelHost) int {
	at := slices.IndexFunc(h.items, func(it modelItem) bool { return it.url == v.URL })
	if at < 0 {
		d.t.Fatalf("%s was handed out, and does not wait", v.URL)
	}
	d.f.mu.Lock()
	defer d.f.mu.Unlock()
	hot := d.f.bench.hosts[v.Host]
	if slices.ContainsFunc(h.items[:at], func(it modelItem) bool { return it.late }) {
		return at // after a crash, a visit under way is not known to be QueueLast
	}
	switch most := 0; {
	case h.items[at].late, len(hot.queue.links) > 0 && (h.loose || hot.queue.ranks.reranking):
		return at
	default:
		if len(hot.queue.links) > 0 {
			most = missedAtOnce + len(h.items)/8
		}
		if at > most {
			d.t.Fatalf("%s of rank %d was handed out before %d items that belong before it, such as %+v; %d are in memory",
				v.URL, h.items[at].rank, at, h.items[0], len(hot.queue.front))
		}
	}
	d.order++
	if d.cfg.Memory == 0 && !d.refreshed {
		d.wantFirst(v)
	}
	return at
}

// wantFirst compares a visit with the first items of the other due hosts.
func (d *duel) wantFirst(v *Visit) {
	standing := func(rank int, due time.Time) int {
		return rank - rankSteps*bits.Len64(uint64(v.Started.Sub(due)/firstBoost))
	}
	for key, h := range d.m.hosts {
		hot := d.f.bench.hosts[key]
		if key == v.Host || !h.eligible() || hot.clock.next.After(v.Started) {
			continue
		}
		if other := standing(h.items[0].rank, hot.clock.next); other < standing(int(v.Rank), v.nextBefore) {
			d.t.Fatalf("%s of rank %d, due for %v, was handed out before %+v, due for %v", v.URL, v.Rank,
				v.Started.Sub(v.nextBefore), h.items[0], v.Started.Sub(hot.clock.next))
		}
	}
}

const rankSteps = int(rank.Steps)

// The bucket entries of a host are read as written, whatever their bytes.
func FuzzColdHost(f *testing.F) {
	r := newFakeRanker()
	moves := []Move{r.put("http://h/1", 7), r.put("http://h/2", 300)}
	host := func(kind byte, more func(*writer)) []byte {
		w := writer{b: []byte{kind}}
		if kind == putRanked {
			w.uint(3)
			w.uint(200)
		}
		w.string("h")
		w.uint(0)
		for i := range 3 {
			it := r.item(fmt.Sprint("http://h/", i), rank.Place(100+i), int8(i))
			var body writer
			body.item("h", &it)
			w.entry(&entry{key{it.Rank, urlOf(r.KeyOf(it.URL)), uint64(i + 1)}, body.b})
		}
		more(&w)
		return w.b
	}
	var pushed, moved writer
	pushed.b = append(pushed.b, putItems)
	pushed.entry(&entry{key{robotsRank, 0, 9}, nil})
	moved.b = append(moved.b, putMoves)
	moved.moves(2, moves)
	f.Add(host(putRanked, func(*writer) {}), moved.b, false)
	f.Add(host(putHost, func(*writer) {}), pushed.b, true)
	f.Add(host(putHost, func(w *writer) { w.uint(1) }), moved.b, true)
	f.Add(moved.b, pushed.b, false)
	f.Fuzz(func(t *testing.T, first, second []byte, old bool) {
		if len(first) == 0 || len(second) == 0 {
			return // impossible: see parseEntries
		}
		front := &bucketReader{}
		s, err := front.host([]part{{1, old, first}, {1, old, second}}, nil)
		if err != nil {
			return
		}
		if n := len(s.items) + s.staleRobots; 4*n > len(first)+len(second) && n > 1 {
			t.Errorf("%d bytes became %d items", len(first)+len(second), n)
		}
		if old && s.generation != generationBefore {
			t.Errorf("ranks of another process have generation %d", s.generation)
		}
		w := writer{b: []byte{putHost}}
		w.string(s.name)
		w.uint(0)
		for i := range s.items {
			w.entry(&s.items[i])
		}
		again, err := front.host([]part{{1, false, w.b}}, nil)
		if err != nil || fmt.Sprint(again.items) != fmt.Sprint(s.items) {
			t.Errorf("%v became %v: %v", s.items, again.items, err)
		}
	})
}

// Moves are read as they were written.
func TestMovesAreReadAsTheyWereWritten(t *testing.T) {
	var w writer
	w.moves(1<<40, []Move{{Key: 1<<37 - 1, Place: 9000}, {Key: 0, Place: -3}, {Key: 1 << 32, Place: 1 << 30}})
	r := readerOf(w.b)
	want := []pendingMove{{1<<32 - 1, 9000, 1 << 40}, {1, 0, 1 << 40}, {1, 1 << 30, 1 << 40}}
	if got := r.moves(nil); r.Bad || !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i := range w.b { // cut off in the middle of a move
		r := readerOf(w.b[:i])
		if got := r.moves(nil); !r.Bad && i > 0 && len(got) == len(want) {
			t.Errorf("%d bytes of %d are %v", i, len(w.b), got)
		}
	}
}
