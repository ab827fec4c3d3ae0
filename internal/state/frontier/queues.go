package frontier

import (
	"math"
	"slices"
)

// A hostQueue contains the pending items of one host: the front in memory, the rest in blocks.
type hostQueue struct {
	host    string         // the host's key
	front   queue          // robots.txt fetches go first, even while the host is parked
	links   []link         // links to the rest on disk, sorted
	deepest int32          // deepest rank that any item ever had
	ranks   *hostRanks     // nil if hosts do not go by rank
	bytes   int64          // approximate memory
	arena   []byte         // buffer of the items that came from a bucket
	blocks  *blocksRewrite // set by the compactor, whose queues are not those in memory
}

// count returns the number of pending items.
func (q *hostQueue) count() uint32 {
	n := uint32(len(q.front))
	for i := range q.links {
		n += q.links[i].count
	}
	return n
}

// first returns the key of the first item, lastKey if there is none. If the first item is in a block that was not read,
// the key may be too low.
func (q *hostQueue) first() key {
	k := lastKey
	if len(q.front) > 0 {
		k = q.front[0].key
	}
	if len(q.links) > 0 && q.links[0].key.less(k) {
		k = q.links[0].key
	}
	return k
}

// bestRank returns a lower bound of the rank of the first item.
func (q *hostQueue) bestRank() int32 { return min(q.first().rank, q.ranks.best) }

// applyMoves applies the moves to the items in memory.
func (q *hostQueue) applyMoves() {
	r := q.ranks
	if r == nil || len(r.moves) == 0 {
		return
	}
	n := moveTo(q.front, r.moves, &q.deepest)
	if n.fell {
		q.front.init()
	}
	r.moves, r.best = r.moves[:0], math.MaxInt32
	if len(q.links) > 0 {
		r.missedMoves += uint32(n.missed)
	}
}

// movesMatter reports whether applying the moves may change which item is first.
func (q *hostQueue) movesMatter() bool {
	r := q.ranks
	return r != nil && len(r.moves) > 0 && (r.best <= q.first().rank || len(q.front) > 0 && r.has(q.front[0].url))
}

// has reports whether there is a move of a URL.
func (r *hostRanks) has(url uint32) bool {
	return slices.ContainsFunc(r.moves, func(m pendingMove) bool { return m.url == url })
}

// missedAtOnce is the least number of missed moves for which blocks are read.
const missedAtOnce = 2 * maxBlockItems

// needsReranking reports whether so many moves have missed the items in memory that the blocks should be reranked. The
// threshold is an eighth of the items in blocks, so that a move costs as much as writing and reading some items.
func (q *hostQueue) needsReranking() bool {
	r := q.ranks
	return r != nil && !r.reranking && r.missedMoves >= missedAtOnce && r.missedMoves >= (q.count()-uint32(len(q.front)))/8
}

// A queueStore moves items of host queues between memory and blocks. Before it changes the queue of a host, the caller
// must save the host for a checkpoint (saver). The frontier's lock guards it.
type queueStore struct {
	segments  *segments // nil, with pages, if all is in memory
	pages     *pager
	ranking   *ranking
	residents *residents
	window    int64 // limit of one host's bytes in memory
}

// push adds an entry to a queue in memory.
func (s *queueStore) push(q *hostQueue, e entry) {
	q.front.push(e)
	s.residents.charge(q, e.cost())
	if q.bytes > s.window {
		s.spill(q, len(q.front)/2)
	}
}

// pop removes the first entry in memory.
func (s *queueStore) pop(q *hostQueue) entry {
	e := q.front.pop()
	s.residents.charge(q, -e.cost())
	return e
}

// loadFirst reads blocks until the first item is in memory.
func (s *queueStore) loadFirst(q *hostQueue) error {
	for len(q.links) > 0 && (len(q.front) == 0 || q.links[0].key.less(q.front[0].key)) {
		if err := s.expand(q, 0); err != nil {
			return err
		}
	}
	if q.bytes > s.window && len(q.front) > 4*maxBlockItems {
		s.spill(q, len(q.front)/2)
	}
	return nil
}

// loadFront reads blocks until the first n items, or all, are in memory. Suppressed items do not count.
func (s *queueStore) loadFront(q *hostQueue, n int, suppressed *suppression) error {
	for len(q.links) > 0 {
		before := 0
		for i := range q.front {
			if q.front[i].less(q.links[0].key) && !suppressed.hasEntry(q.host, &q.front[i]) {
				before++
			}
		}
		if before >= n {
			return nil
		}
		if err := s.expand(q, 0); err != nil {
			return err
		}
	}
	return nil
}

// expand replaces a link with the contents of its block.
func (s *queueStore) expand(q *hostQueue, i int) error {
	at := q.links[i].at
	b, err := s.pages.block(at)
	if err != nil {
		return err
	}
	if q.blocks != nil {
		q.blocks.read = append(q.blocks.read, chunk{at, b.size})
	} else {
		s.segments.count(at, -b.size)
	}
	q.links = slices.Delete(q.links, i, i+1)
	for _, l := range b.links {
		q.links = insertLink(q.links, l)
	}
	if s.ranking.ranker != nil && q.blocks == nil { // the bucket of a cold host contains the first key
		q.deepest = s.ranking.rerank(q.host, b.items, q.deepest)
	}
	for _, e := range b.items {
		q.front.push(e)
		s.residents.charge(q, e.cost())
	}
	return nil
}

// expandBefore expands one link to blocks before a location. done is true if there is none.
func (s *queueStore) expandBefore(q *hostQueue, before loc) (done bool, err error) {
	i := slices.IndexFunc(q.links, func(l link) bool { return l.oldest < before })
	if i < 0 {
		return true, nil
	}
	if err := s.expand(q, i); err != nil {
		return false, err
	}
	if q.bytes > 2*s.window {
		s.spill(q, max(maxBlockItems, len(q.front)/2))
	}
	return false, nil
}

// write appends a block of a queue.
func (s *queueStore) write(q *hostQueue, b *block) loc {
	at, n := s.segments.append(func(w *writer) { w.block(b) })
	if q.blocks != nil {
		q.blocks.written = append(q.blocks.written, chunk{at, n})
	}
	return at
}

// spill writes all but the first items, sorted. robots.txt fetches stay in memory. Items of different ranks go into
// different chains of blocks, so that chains written at different times need not be read alternately.
func (s *queueStore) spill(q *hostQueue, most int) {
	if len(q.front) <= most {
		return
	}
	q.applyMoves()
	slices.SortFunc(q.front, func(a, b entry) int { return a.compare(b.key) })
	for most < len(q.front) && q.front[most].rank == robotsRank {
		most++
	}
	for len(q.front) > most {
		end := len(q.front)
		begin := end - 1
		for begin > most && q.front[begin-1].rank == q.front[end-1].rank {
			begin--
		}
		if end-most <= maxBlockItems {
			begin = most // too few for a separate chain
		}
		s.chain(q, q.front[begin:end])
		for i := range q.front[begin:end] {
			s.residents.charge(q, -q.front[begin+i].cost())
		}
		clear(q.front[begin:end])
		q.front = q.front[:begin]
	}
	s.pack(q, 2*maxBlockLinks)
}

// store reduces the queue to one link and a front of at most maxFront items in memory, or no items if front is false.
func (s *queueStore) store(q *hostQueue, front bool) {
	most := len(q.front)
	if !front {
		most = 0
	} else if most > maxFront {
		most = maxFront / 2
	}
	s.spill(q, most)
	s.pack(q, 1)
}

// chain writes sorted items as blocks, each with a link to the next, and adds the link to the first to the queue.
func (s *queueStore) chain(q *hostQueue, items []entry) {
	var rest []link
	b := block{host: q.host}
	for end := len(items); end > 0; {
		begin := (end - 1) / maxBlockItems * maxBlockItems
		b.links, b.items = rest, items[begin:end]
		at := s.write(q, &b)
		rest = []link{{at: at, key: items[begin].key, count: uint32(len(items) - begin), oldest: at}}
		if len(b.links) > 0 {
			rest[0].oldest = min(rest[0].oldest, b.links[0].oldest)
		}
		end = begin
	}
	q.links = insertLink(q.links, rest[0])
}

// pack reduces the number of links: it moves the last ones to blocks of links.
func (s *queueStore) pack(q *hostQueue, most int) {
	for len(q.links) > most {
		group := q.links[max(0, len(q.links)-maxBlockLinks):]
		at := s.write(q, &block{host: q.host, links: group})
		d := directory(at, group)
		q.links = insertLink(q.links[:len(q.links)-len(group)], d)
	}
}
