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

// Within a host the item with the least rank goes first. The caller of Push gives an item its rank. Where ranks change
// while items are pending, a new rank reaches an item in three ways.
//
// A Move gives a single URL a new place. Moves are kept until one of them may bring an item to the front, or until they
// are an eighth of the host's items in memory: then one pass over these gives all of them their ranks, so that a move
// costs a constant.
//
// A Ranker knows the places of all URLs. It is asked about a host's items in memory when its Generation has changed,
// and about items that are read from a block.
//
// An item whose rank has fallen without a Move is found when it would be handed out.

// A Ranker knows the places of URLs whose importance changes. It is called with the frontier locked.
type Ranker interface {
	KeyOf(url string) ids.Key
	// Generation changes when places have changed without a Move.
	Generation() uint64
	// Places appends the places of URLs, without their lifts. After an error the places of the rest are not known.
	Places(all []ids.URL, to []rank.Place) ([]rank.Place, error)
}

// A Move gives a pending URL a new place.
type Move struct {
	Key   ids.Key
	Place rank.Place // without the item's lift
}

// A ranking numbers items and hosts by age, and gives items their ranks. The frontier's lock guards it.
type ranking struct {
	ranker   Ranker // nil: ranks do not change
	byRank   bool   // hosts go by rank
	age      uint64 // of the youngest item or host
	mostLift int8   // of any item ever

	enc    writer
	asked  []ids.URL // buffers for reuse
	lifted []lifted
	places []rank.Place
}

// lifted is an item whose place the Ranker is asked for.
type lifted struct {
	at   int
	lift int8
}

// hostRanks are the ranks of a host's items in memory, where they change or hosts go by them.
type hostRanks struct {
	generation   uint64 // of the Ranker when it gave them
	moves        []pendingMove
	best         int32  // no move brings an item before this rank
	missedMoves  uint32 // moves without an item in memory, while there were blocks
	reranking    bool   // blocks are being ranked anew
	rerankBefore loc    // blocks before it are still to be
}

// A pendingMove is a Move as a host keeps it.
type pendingMove struct {
	url   uint32
	place rank.Place
	seq   uint64 // a younger item was pushed after the move, with its rank
}

// generationBefore is the generation of ranks that an earlier process gave.
const generationBefore = math.MaxUint64

// generation is the Ranker's.
func (r *ranking) generation() uint64 { return r.ranker.Generation() }

func (r *ranking) nextAge() uint64 {
	r.age++
	return r.age
}

// initHost prepares a host that has come into memory. Items that are pushed now have current ranks.
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

// assign gives an item its age and, if it is Late, its rank; an item that was here before keeps its place, unless it is
// Late. It takes and returns the deepest rank that any of the host's items had. A Late item stays marked: it is not
// moved.
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

// encode is entry, whose data is valid until the next call.
func (r *ranking) encode(host string, it *Item) entry {
	r.enc.b = r.enc.b[:0]
	r.enc.item(host, it)
	return entry{key{it.Rank, r.urlOf(it), it.Seq}, r.enc.b}
}

// urlOf is the number by which a queue knows a URL, never 0. It is a part of its key: among a million URLs of a host
// two share one with a probability of one in 4,000 each, and one of them has the rank of the other until it is handed
// out.
func urlOf(k ids.Key) uint32 { return max(uint32(k), 1) }

// isMovable reports whether an item's rank is its URL's, and not one that the frontier gave.
func isMovable(it *Item) bool { return !it.QueueLast && !it.Deferred && it.Robots == "" }

// urlOf is the number by which a queue knows an item, 0 if it cannot be moved.
func (r *ranking) urlOf(it *Item) uint32 {
	if r.ranker == nil || !isMovable(it) {
		return 0
	}
	return urlOf(r.ranker.KeyOf(it.URL))
}

func rankAt(p rank.Place, lift int8) int32 { return int32(p.With(rank.Lift(lift))) }

// rerankAtOnce is how many items the Ranker is asked about in one call.
const rerankAtOnce = 1024

// rerank gives items of a host the ranks that the Ranker has for them; where it has none, they keep theirs. It returns
// the deepest rank.
func (r *ranking) rerank(host string, all []entry, deepest int32) int32 {
	items := item.Reader{Share: 64 << 10} // the strings are dropped
	for part := range slices.Chunk(all, rerankAtOnce) {
		r.asked, r.places = r.asked[:0], r.places[:0]
		r.lifted = r.lifted[:0]
		for i := range part {
			it, err := items.ReadBody(part[i].data, host)
			if err != nil || !isMovable(&it) {
				continue // handing it out reports the error
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

// current is the rank that an item should have now.
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

// renew gives an item that a visit gives back its current rank.
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

// move keeps moves of a host's items, and applies them if there are enough.
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

// refresh makes the host's first item in memory the one that should go first, and updates the ranks if the Ranker's
// generation has changed.
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

// moved counts the effects of moves.
type moved struct {
	missed int  // URLs without an item
	fell   bool // a rank became worse: the queue is not in order
}

// moveTo applies moves, the latest of each URL, to a queue. Items that rise are put in order at once.
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
		at, some := slices.BinarySearchFunc(
			moves,
			url,
			func(m pendingMove, url uint32) int { return cmp.Compare(m.url, url) },
		)
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
