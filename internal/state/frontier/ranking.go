package frontier

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"kumo/internal/base/item"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
)

// Within a host the item with the least rank goes first. The caller of Push supplies the rank. If ranks change while
// items are pending, a new rank reaches an item in one of three ways.
//
// A Move gives a single URL a new place. Moves are kept until one of them may bring an item to the front, or until they
// number an eighth of the host's items in memory. Then one pass over these items applies all moves, so that the cost of
// a move is constant.
//
// A Ranker supplies the places of all URLs. It is called for a host's items in memory when its Generation has changed,
// and for items that are read from a block.
//
// If a rank became worse without a Move, this is found when the item is about to be handed out.

// A Ranker supplies the places of URLs whose importance changes. It is called with the frontier locked.
type Ranker interface {
	KeyOf(url string) ids.Key
	// Generation changes when places change without a Move.
	Generation() uint64
	// Places appends the places of URLs, without their lifts. After an error the places of the rest are unknown.
	Places(all []ids.URL, to []rank.Place) ([]rank.Place, error)
}

// A Move gives a pending URL a new place.
type Move struct {
	Key   ids.Key
	Place rank.Place // without the item's lift
}

// A ranking numbers items and hosts by age, and sets the ranks of items. The frontier's lock guards it.
type ranking struct {
	ranker   Ranker // nil if ranks do not change
	byRank   bool   // hosts go by rank
	age      uint64 // of the youngest item or host
	mostLift int8   // greatest lift of any item so far

	enc    writer
	asked  []ids.URL // buffers for reuse
	lifted []lifted
	places []rank.Place
}

// lifted is an item whose place is requested from the Ranker.
type lifted struct {
	at   int
	lift int8
}

// hostRanks contains the state of a host's ranks, if ranks change or hosts go by rank.
type hostRanks struct {
	generation   uint64 // of the Ranker when the ranks were computed
	moves        []pendingMove
	best         int32  // lower bound of the ranks to which moves bring items
	missedMoves  uint32 // moves without an item in memory, while there were blocks
	reranking    bool   // blocks are being reranked
	rerankBefore loc    // blocks before this location are still to be reranked
}

// A pendingMove is a Move not yet applied to a host's items.
type pendingMove struct {
	url   uint32
	place rank.Place
	seq   uint64 // age at the move; a younger item was pushed with its current rank
}

// generationBefore is the generation of ranks from an earlier process.
const generationBefore = math.MaxUint64

// generation returns the Ranker's generation.
func (r *ranking) generation() uint64 { return r.ranker.Generation() }

func (r *ranking) nextAge() uint64 {
	r.age++
	return r.age
}

// initHost initializes a host that has come into memory. The ranks of items pushed from now on are current.
func (r *ranking) initHost(h *host) {
	if !r.byRank {
		return
	}
	if h.queue.ranks == nil {
		var both struct { // one allocation
			ranks hostRanks
			ready ready
		}
		h.queue.ranks, h.position.ready = &both.ranks, &both.ready
	}
	*h.position.ready = ready{}
	*h.queue.ranks = hostRanks{moves: h.queue.ranks.moves[:0], best: math.MaxInt32}
	if r.ranker != nil {
		h.queue.ranks.generation = r.generation()
	}
}

// assign sets an item's age and, if it is QueueLast, its rank. An item that was here before keeps its place, unless it
// is QueueLast. assign takes and returns the deepest rank of the host's items so far. A QueueLast item remains marked,
// so that it is not moved.
func (r *ranking) assign(it *Item, deepest int32) int32 {
	r.mostLift = max(r.mostLift, it.Lift)
	if it.Seq == 0 || it.QueueLast || it.Robots != "" {
		it.Rank, it.Seq = max(it.Rank, 0), r.nextAge()
		if !it.Deferred {
			deepest = max(deepest, it.Rank)
		}
	}
	switch {
	case it.Robots != "":
		it.Rank, it.QueueLast = robotsRank, false
	case it.Deferred:
		it.Rank, it.QueueLast = deferredRank-int32(it.Vain), false
	case it.QueueLast:
		it.Rank = deepest
	}
	return deepest
}

// entry encodes an item.
func (r *ranking) entry(host string, it *Item) entry {
	e := r.encode(host, it)
	e.data = bytes.Clone(e.data)
	return e
}

// encode is entry, but its data is valid only until the next call.
func (r *ranking) encode(host string, it *Item) entry {
	r.enc.b = r.enc.b[:0]
	r.enc.item(host, it)
	return entry{key{it.Rank, r.urlOf(it), it.Seq}, r.enc.b}
}

// urlOf returns the number of a URL in a queue, never 0. It is a part of the key. Among a million URLs of a host, each
// has a chance of one in 4,000 to share its number. Then one of the two has the rank of the other until it is handed
// out.
func urlOf(k ids.Key) uint32 { return max(uint32(k), 1) }

// isMovable reports whether an item's rank depends on its URL only.
func isMovable(it *Item) bool { return !it.QueueLast && !it.Deferred && it.Robots == "" }

// urlOf returns the number of an item in a queue, 0 if it cannot be moved.
func (r *ranking) urlOf(it *Item) uint32 {
	if r.ranker == nil || !isMovable(it) {
		return 0
	}
	return urlOf(r.ranker.KeyOf(it.URL))
}

func rankAt(p rank.Place, lift int8) int32 { return int32(p.With(rank.Lift(lift))) }

// rerankAtOnce is the number of items in one call of the Ranker.
const rerankAtOnce = 1024

// rerank sets items of a host to the Ranker's current ranks. Items unknown to the Ranker keep theirs. It returns the
// deepest rank.
func (r *ranking) rerank(host string, all []entry, deepest int32) int32 {
	items := item.Reader{Share: 64 << 10} // the strings are not retained
	for part := range slices.Chunk(all, rerankAtOnce) {
		r.asked, r.places = r.asked[:0], r.places[:0]
		r.lifted = r.lifted[:0]
		for i := range part {
			it, err := items.ReadBody(part[i].data, host)
			if err != nil || !isMovable(&it) {
				continue // popFirst reports the error
			}
			k := r.ranker.KeyOf(it.URL)
			r.asked = append(r.asked, ids.URL{Key: k, Depth: it.Depth})
			r.lifted = append(r.lifted, lifted{i, it.Lift})
			part[i].url = urlOf(k)
		}
		r.places, _ = r.ranker.Places(r.asked, r.places)
		for i, p := range r.places {
			to := rankAt(p, r.lifted[i].lift)
			part[r.lifted[i].at].rank = to
			deepest = max(deepest, to)
		}
	}
	return deepest
}

// current returns the rank that an item should have now.
func (r *ranking) current(it *Item) int32 {
	if r.ranker == nil || !isMovable(it) {
		return it.Rank
	}
	r.asked = append(r.asked[:0], ids.URL{Key: r.ranker.KeyOf(it.URL), Depth: it.Depth})
	places, err := r.ranker.Places(r.asked, r.places[:0])
	if r.places = places; err != nil || len(places) == 0 {
		return it.Rank
	}
	return rankAt(places[0], it.Lift)
}

// refreshRank sets the current rank of an item that a visit returns.
func (r *ranking) refreshRank(q *hostQueue, it *Item) {
	if r.ranker == nil || it.Seq == 0 || !isMovable(it) {
		return
	}
	it.Rank = r.current(it)
	url := r.urlOf(it)
	q.ranks.moves = slices.DeleteFunc(q.ranks.moves, func(m pendingMove) bool { return m.url == url })
	q.ranks.best = math.MaxInt32
	for _, m := range q.ranks.moves {
		q.ranks.best = min(q.ranks.best, rankAt(m.place, r.mostLift))
	}
}

// movesAtOnce is the least number of moves for which a pass over a host's items is worthwhile.
const movesAtOnce = 8

// move records moves of a host's items, and applies them if there are enough.
func (r *ranking) move(q *hostQueue, moves []Move) (applied bool) {
	for _, m := range moves {
		q.ranks.moves = append(q.ranks.moves, pendingMove{urlOf(m.Key), m.Place, r.age})
		q.ranks.best = min(q.ranks.best, rankAt(m.Place, r.mostLift))
	}
	if len(q.ranks.moves) < max(movesAtOnce, len(q.front)/8) {
		return false
	}
	q.applyMoves()
	return true
}

// refresh ensures that the first item in memory is the right one, and updates the ranks if the Ranker's generation has
// changed.
func (r *ranking) refresh(q *hostQueue) {
	if r.ranker == nil {
		return
	}
	if q.movesMatter() {
		q.applyMoves()
	}
	if g := r.generation(); g != q.ranks.generation {
		q.applyMoves()
		q.deepest = r.rerank(q.host, q.front, q.deepest)
		q.front.init()
		q.ranks.generation = g
	}
}

// moved summarizes the effects of moves.
type moved struct {
	missed int  // URLs without an item
	fell   bool // a rank became worse, so the queue is out of order
}

// moveTo applies moves to a queue; for each URL only the latest. Items whose rank improves are put in order at once.
func moveTo(q queue, moves []pendingMove, deepest *int32) (n moved) {
	if len(moves) == 0 {
		return n
	}
	slices.SortStableFunc(moves, func(a, b pendingMove) int { return cmp.Compare(a.url, b.url) })
	var filter [64]uint64 // most items are not moved
	for i := range moves {
		if filter[moves[i].url>>6&63] |= 1 << (moves[i].url & 63); i == 0 || moves[i].url != moves[i-1].url {
			n.missed++
		}
	}
	for i := range q {
		url := q[i].url
		if url == 0 || filter[url>>6&63]>>(url&63)&1 == 0 {
			continue
		}
		at, some := slices.BinarySearchFunc(moves, url,
			func(m pendingMove, url uint32) int { return cmp.Compare(m.url, url) })
		if !some {
			continue
		}
		n.missed = max(n.missed-1, 0)
		for at+1 < len(moves) && moves[at+1].url == url {
			at++
		}
		if moves[at].seq < q[i].seq {
			continue
		}
		switch to := rankAt(moves[at].place, item.LiftOf(q[i].data)); {
		case to > q[i].rank:
			n.fell = true
			q[i].rank = to
			*deepest = max(*deepest, to)
		case to < q[i].rank:
			q[i].rank = to
			q.up(i)
		}
	}
	return n
}
