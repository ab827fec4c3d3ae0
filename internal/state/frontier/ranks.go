package frontier

import (
	"cmp"
	"math"
	"slices"

	"kumo/internal/base/item"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
)

// Within a host the item goes first whose rank is the least. Who pushes an item gives its rank; where ranks change
// while items wait, that comes to an item on three ways.
//
// Moves say of single URLs where they belong now. They are kept until one of them may bring an item to the front, or
// until they are an eighth of what the host has in memory: then one walk through that gives all of them their ranks, so
// that a move costs a constant.
//
// A Ranker says of all URLs where they belong. It is asked for what a host has in memory when its Generation is another
// than it was, and for what comes from a block into memory.
//
// What has fallen, and nobody has told, is found when it would be handed out.

// A Ranker says where URLs belong whose importance changes. It is asked with the frontier locked.
type Ranker interface {
	KeyOf(url string) ids.Key
	// Generation is another when places have changed of which no Move tells.
	Generation() uint64
	// Places appends where URLs belong, without their lifts. After an error the places of the rest are not known.
	Places(all []ids.URL, to []rank.Place) ([]rank.Place, error)
}

// A Move says where a URL that waits belongs now.
type Move struct {
	Key   ids.Key
	Place rank.Place // without the item's lift
}

// Move moves items of a host in its queue. What does not wait there is left out. Without Config.Ranker nothing is
// moved.
func (f *Frontier) Move(key string, moves []Move) {
	if f.cfg.Ranker == nil || len(moves) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := f.coldID(key); id != 0 {
		f.moveCold(id, moves)
		f.shrink()
		return
	}
	if f.hosts[key] == nil && (f.disk == nil || f.disk.table.find(f.disk.table.identity(key)) == 0) {
		return
	}
	f.moveHot(f.host(key), moves)
	f.shrink()
}

// hostRanks are the ranks of what a host has in memory, where they change or hosts go by them.
type hostRanks struct {
	ready
	generation uint64 // of the Ranker, as of which they are
	moves      []newPlace
	best       int32  // no move brings an item before this rank
	missed     uint32 // moves that have found nothing in memory, while there were blocks
	renewing   bool   // blocks are being ranked anew
	from       loc    // those before are still to be
}

// A newPlace is a Move as a host keeps it.
type newPlace struct {
	url   uint32
	place rank.Place
	seq   uint64 // what is younger was pushed after the move, with its rank
}

// beginRanks prepares a host that has come into memory. What is pushed there has its rank of now.
func (f *Frontier) beginRanks(h *host) {
	if !f.ranksHosts() {
		return
	}
	if h.ranks == nil {
		h.ranks = &hostRanks{}
	}
	*h.ranks = hostRanks{moves: h.ranks.moves[:0], best: math.MaxInt32}
	if f.cfg.Ranker != nil {
		h.ranks.generation = f.cfg.Ranker.Generation()
	}
}

// ofBefore is the generation of ranks that an earlier process gave.
const ofBefore = math.MaxUint64

// urlOf is what a URL is known by in a queue, never 0. It is a part of its key: among a million URLs of a host two are
// the same with a probability of one in 4,000 each, and one of them gets the rank of the other until it is handed out.
func urlOf(k ids.Key) uint32 { return max(uint32(k), 1) }

// isMovable reports whether an item's rank is its URL's, and not one that the frontier gave.
func isMovable(it *Item) bool { return !it.Late && !it.Deferred && it.Robots == "" }

// urlOf is what an item is known by to who moves it, 0 if nobody may.
func (f *Frontier) urlOf(it *Item) uint32 {
	if f.cfg.Ranker == nil || !isMovable(it) {
		return 0
	}
	return urlOf(f.cfg.Ranker.KeyOf(it.URL))
}

func rankAt(p rank.Place, lift int8) int32 { return int32(p.With(rank.Lift(lift))) }

// movesAtOnce is how many moves are kept at least: a walk for fewer is not worth its while.
const movesAtOnce = 8

func (f *Frontier) moveHot(h *host, moves []Move) {
	r := h.ranks
	for _, m := range moves {
		r.moves = append(r.moves, newPlace{urlOf(m.Key), m.Place, f.seq})
		r.best = min(r.best, rankAt(m.Place, f.mostLift))
	}
	if len(r.moves) >= max(movesAtOnce, len(h.waiting)/8) {
		f.applyMoves(h)
		f.renewBlocks(h)
	}
	f.place(h)
}

// applyMoves gives items in memory the ranks that moves have brought.
func (f *Frontier) applyMoves(h *host) {
	r := h.ranks
	if r == nil || len(r.moves) == 0 {
		return
	}
	f.touch(h)
	n := moveTo(h.waiting, r.moves, &h.deepest)
	if n.fell {
		h.waiting.init()
	}
	r.moves, r.best = r.moves[:0], math.MaxInt32
	if len(h.links) > 0 {
		r.missed += uint32(n.missed)
	}
}

// moved is what moves have done.
type moved struct {
	missed int  // URLs that are not there
	fell   bool // a rank became worse: the queue is not in order
}

// moveTo applies moves, the latest of a URL, to a queue. What rises finds its place at once.
func moveTo(q queue, moves []newPlace, deepest *int32) (n moved) {
	if len(moves) == 0 {
		return n
	}
	slices.SortStableFunc(moves, func(a, b newPlace) int { return cmp.Compare(a.url, b.url) })
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
		at, some := slices.BinarySearchFunc(moves, url, func(m newPlace, url uint32) int { return cmp.Compare(m.url, url) })
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

// renewRanks sees to it that what goes first at a host in memory is what is to go first, and reports whether that is
// worth less than it was held for.
func (f *Frontier) renewRanks(h *host) (less bool) {
	r := h.ranks
	if r == nil || f.cfg.Ranker == nil {
		return false
	}
	if h.movesMatter() {
		f.applyMoves(h)
	}
	if g := f.cfg.Ranker.Generation(); g != r.generation {
		f.applyMoves(h)
		f.touch(h)
		f.rerank(h.key, h.waiting, &h.deepest)
		h.waiting.init()
		r.generation = g
	}
	f.renewBlocks(h)
	return h.bestRank() > r.rank
}

// movesMatter reports whether another item may go first once moves are applied.
func (h *host) movesMatter() bool {
	r := h.ranks
	return r != nil && len(r.moves) > 0 && (r.best <= h.first().rank || len(h.waiting) > 0 && r.has(h.waiting[0].url))
}

// has reports whether a URL is to be moved.
func (r *hostRanks) has(url uint32) bool {
	return slices.ContainsFunc(r.moves, func(m newPlace) bool { return m.url == url })
}

// rerankAtOnce is of how many items the Ranker is asked at once.
const rerankAtOnce = 1024

// rerank gives items of a host the ranks that the Ranker has for them. What it does not know stays.
func (f *Frontier) rerank(host string, all []entry, deepest *int32) {
	items := item.Reader{Share: 64 << 10} // strings are of no use afterwards
	for part := range slices.Chunk(all, rerankAtOnce) {
		f.asked, f.places = f.asked[:0], f.places[:0]
		f.lifted = f.lifted[:0]
		for i := range part {
			it, err := items.ReadBody(part[i].data, host)
			if err != nil || !isMovable(&it) {
				continue // what cannot be read is said when its turn comes
			}
			k := f.cfg.Ranker.KeyOf(it.URL)
			f.asked = append(f.asked, ids.URL{Key: k, Depth: it.Depth})
			f.lifted = append(f.lifted, lifted{i, it.Lift})
			part[i].url = urlOf(k)
		}
		f.places, _ = f.cfg.Ranker.Places(f.asked, f.places)
		for i, p := range f.places {
			to := rankAt(p, f.lifted[i].lift)
			part[f.lifted[i].at].rank = to
			*deepest = max(*deepest, to)
		}
	}
}

// lifted is an item that the Ranker is asked for.
type lifted struct {
	at   int
	lift int8
}

// currentRank is the rank that an item is to have now.
func (f *Frontier) currentRank(it *Item) int32 {
	if f.cfg.Ranker == nil || !isMovable(it) {
		return it.Rank
	}
	f.asked = append(f.asked[:0], ids.URL{Key: f.cfg.Ranker.KeyOf(it.URL), Depth: it.Depth})
	places, err := f.cfg.Ranker.Places(f.asked, f.places[:0])
	if f.places = places; err != nil || len(places) == 0 {
		return it.Rank
	}
	return rankAt(places[0], it.Lift)
}

// rankAgain gives an item that was under way, and waits again, the rank that it is to have now.
func (f *Frontier) rankAgain(h *host, it *Item) {
	if f.cfg.Ranker == nil || it.Seq == 0 || !isMovable(it) {
		return
	}
	it.Rank = f.currentRank(it)
	url := f.urlOf(it)
	r := h.ranks
	r.moves = slices.DeleteFunc(r.moves, func(m newPlace) bool { return m.url == url })
	r.best = math.MaxInt32
	for _, m := range r.moves {
		r.best = min(r.best, rankAt(m.place, f.mostLift))
	}
}

// hasFallen puts an item back that is worth less than half of what its rank says.
func (f *Frontier) hasFallen(h *host, e entry, it *Item) bool {
	to := f.currentRank(it)
	if to <= e.rank+rank.Steps {
		return false
	}
	e.rank = to
	h.deepest = max(h.deepest, to)
	f.waiting++
	f.keep(h, e)
	return true
}

// missedAtOnce is how many moves have to miss at least, before blocks are read for them.
const missedAtOnce = 2 * maxBlockItems

// renewBlocks has the blocks of a host ranked anew if enough moves have found nothing in memory: an eighth of what is
// in blocks, so that a move costs as much as writing and reading some items.
func (f *Frontier) renewBlocks(h *host) {
	r := h.ranks
	if r.renewing || r.missed < missedAtOnce || r.missed < (h.count()-uint32(len(h.waiting)))/8 {
		return
	}
	s := f.disk.segments
	r.renewing, r.missed, r.from = true, 0, newLoc(s.last+1, 0)
	if s.current != nil {
		r.from = newLoc(s.current.id, s.current.size)
	}
	h.held++
	f.disk.renewing = append(f.disk.renewing, h)
	f.signal()
}

// rankBlocksAtOnce is how many blocks are ranked anew before other work on the disk has its turn.
const rankBlocksAtOnce = 256

// rankBlocks reads blocks, asks the Ranker for what is in them, and writes it in its new order, as compaction does.
func (f *Frontier) rankBlocks() error {
	d := f.disk
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := 0; len(d.renewing) > 0 && n < rankBlocksAtOnce && !d.isBehind(); n++ {
		h, done := d.renewing[0], false
		err := f.paged(func() (err error) {
			f.touch(h)
			done, err = f.pullBlock(h, h.ranks.from)
			return err
		})
		if err != nil || done {
			d.renewing[0], d.renewing = nil, d.renewing[1:]
			h.ranks.renewing = false
			f.release(h)
		} else {
			f.place(h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
