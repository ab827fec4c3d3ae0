package frontier

const (
	hostCost  = 600 // approximate bytes in memory
	ranksCost = 250 // if hosts go by rank: hostRanks and some moves
	minStock  = 1024
	stockCost = 4 << 10
)

// residents accounts for the memory of hosts, and decides in which order they are evicted. The frontier's lock guards
// it. It is nil if all hosts stay in memory.
type residents struct {
	bytes           int64
	limit           int64
	ring            host   // hosts that may be evicted, oldest first
	readAheadTarget int    // number of hosts to read ahead
	readAheadCount  [2]int // hosts read ahead: sound, suspects
	free            []*host
}

// A residence is the part of a host that residents owns.
type residence struct {
	id             uint32 // record number; 0 if it has none yet
	unread         bool   // its first item is being read
	isReadAhead    bool   // read ahead of its time and not yet handed out
	readAheadClass class  // sound or suspect
	era            int    // checkpoint era in which it was created or last saved
	held           int    // number of callers that need it in memory
	older, newer   *host  // neighbors in the ring
}

func newResidents(memory int64, slots int) *residents {
	r := &residents{limit: memory, readAheadTarget: int(min(int64(max(minStock, 4*slots)), max(4, memory/4/stockCost)))}
	r.ring.residence.older, r.ring.residence.newer = &r.ring, &r.ring
	return r
}

// blank returns an empty host, if possible a recycled one.
func (r *residents) blank() *host {
	if r == nil || len(r.free) == 0 {
		return &host{}
	}
	n := len(r.free) - 1
	h := r.free[n]
	r.free = r.free[:n]
	return h
}

// recycle keeps a host's memory for reuse.
func (r *residents) recycle(h *host) {
	q, ready, flying := h.queue, h.position.ready, h.visits.items
	clear(q.front)
	*h = host{}
	if cap(q.front) <= 2*maxFront && cap(q.links) <= maxBlockLinks && cap(q.arena) <= bigFront && len(r.free) < minStock {
		h.queue = hostQueue{front: q.front[:0], links: q.links[:0], arena: q.arena[:0], ranks: q.ranks}
		h.position.ready, h.visits.items = ready, flying[:0]
		r.free = append(r.free, h)
	}
}

// admit accounts for a host that has come into memory.
func (r *residents) admit(h *host) {
	n := hostCost + int64(len(h.key))
	if h.queue.ranks != nil {
		n += ranksCost
	}
	r.charge(&h.queue, n)
}

// charge accounts for n bytes of a queue; n is negative for released memory.
func (r *residents) charge(q *hostQueue, n int64) {
	if r == nil {
		return
	}
	q.bytes += n
	r.bytes += n
}

// readAhead marks a host as read ahead, until endReadAhead.
func (r *residents) readAhead(h *host) {
	h.residence.isReadAhead, h.residence.readAheadClass = true, coldClass(h.clock.suspect)
	r.readAheadCount[h.residence.readAheadClass]++
}

func (r *residents) endReadAhead(h *host) {
	if r != nil && h.residence.isReadAhead {
		h.residence.isReadAhead = false
		r.readAheadCount[h.residence.readAheadClass]--
	}
}

// needsReadAhead reports whether more hosts of a class should be read ahead.
func (r *residents) needsReadAhead(c class) bool {
	if c == suspect {
		return r.readAheadCount[c] < max(1, r.readAheadTarget/4)
	}
	return r.readAheadCount[c] < r.readAheadTarget
}

// update adds a host to the ring or removes it, as its state requires.
func (r *residents) update(h *host) {
	if r == nil {
		return
	}
	if h.position.class == idle {
		r.endReadAhead(h)
	}
	stays := h.visits.n > 0 || h.residence.isReadAhead || h.residence.held > 0
	switch inRing := h.residence.older != nil; {
	case stays && inRing:
		r.unlink(h)
	case !stays && !inRing:
		r.link(h)
	}
}

// link appends a host to the ring.
func (r *residents) link(h *host) {
	e, end := &h.residence, &r.ring
	e.older, e.newer = end.residence.older, end
	e.older.residence.newer, end.residence.older = h, h
}

func (r *residents) unlink(h *host) {
	if e := &h.residence; e.older != nil {
		e.older.residence.newer, e.newer.residence.older = e.newer, e.older
		e.older, e.newer = nil, nil
	}
}

// oldest returns the host that was appended to the ring first, nil if the ring is empty.
func (r *residents) oldest() *host {
	if h := r.ring.residence.newer; h != &r.ring {
		return h
	}
	return nil
}

// remove removes a host that leaves memory.
func (r *residents) remove(h *host) {
	r.charge(&h.queue, -h.queue.bytes)
	r.endReadAhead(h)
	r.unlink(h)
	r.recycle(h)
}
