package overlay

import (
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
)

// A watch manages the neighbors, the nearest nodes: it pings each of them every few seconds, finds others in their
// lists, and determines the part of the space around this node that it knows completely.
//
// Its messages are nearQuestion and nearAnswer. Invariants: table.prefix grows only when all neighbors have sent their
// lists since one died, and all nodes in those lists have answered. Fresh never exceeds the time for which the
// neighbors that would take this node's place still consider it alive.
type watch struct {
	env       *env
	table     *table
	absences  *absences
	questions questions

	complete   bool          // all neighbors have sent their lists since one died
	positioned bool          // complete was true once, and each empty bucket was looked up
	fresh      time.Duration // end of the time given by the last Fresh
}

const (
	slack = 16 // queries may be early by this fraction of the exchange interval, to share a step
	// forever is later than any scheduled time.
	forever = time.Duration(1) << 62
)

// interval returns the time until the next query to a neighbor that was just heard from.
func (w *watch) interval() time.Duration {
	every := w.env.cfg.every()
	return every - time.Duration(w.env.rng.Int64N(int64(every)/8))
}

// probeAt schedules the next query to a neighbor.
func (w *watch) probeAt(p *peer, at time.Duration) {
	p.next = at
	w.table.due = min(w.table.due, at)
}

// leadTime returns how early work may run together with other work.
func (w *watch) leadTime() time.Duration { return w.env.cfg.every() / slack }

// probeNeighbors pings the neighbors that are due.
func (w *watch) probeNeighbors() {
	early := w.leadTime()
	if w.table.due > w.env.now+early {
		return
	}
	w.table.due = forever
	for _, p := range w.table.near {
		if p.next <= w.env.now+early {
			w.questions.ping(p)
		}
		if !p.pinged {
			w.table.due = min(w.table.due, p.next)
		}
	}
}

// applyList handles a neighbor's list of neighbors: it queries unknown nodes that would be neighbors of this one.
func (w *watch) applyList(p *peer, m parsedMessage) {
	switch {
	case !m.listed:
	case w.tryListed(p.ID, m):
		p.version = m.version
	default:
		p.version = 0 // request the list again when there is room for more queries
		w.probeAt(p, min(p.next, w.env.now+w.env.cfg.Timeout))
	}
}

// tryListed queries unknown nodes in a list that would be neighbors. It reports whether there was room for all queries.
func (w *watch) tryListed(reporter xor.ID, m parsedMessage) bool {
	all := true
	r := varint.Reader{Rest: m.list}
	for range m.count {
		c := nextReported(&r)
		if len(c.name) == 0 {
			continue
		}
		if w.table.known(string(c.name)) != nil {
			continue
		}
		id := IDOf(string(c.name)).Truncate(w.env.cfg.Width)
		if id == w.table.id || !w.table.isNear(id) {
			continue
		}
		if known := c.contact(id); !w.absences.has(known) {
			all = w.questions.try(known, nearQuestion, short(reporter)) && all
		}
	}
	return all
}

// requestLists requests the lists of all neighbors again. A neighbor has died, so the neighbors cover a larger part of
// the space, whose other nodes are in the lists. Until all lists are here, prefix stays unchanged.
func (w *watch) requestLists() {
	w.complete = false
	for _, p := range w.table.near {
		p.version = 0
	}
}

// extendPrefix extends prefix when all neighbors' lists are here and the nodes in them have answered.
func (w *watch) extendPrefix() {
	if w.complete || !w.table.joined {
		return
	}
	for _, p := range w.table.near {
		if p.version == 0 {
			return
		}
	}
	if !w.questions.awaitsNeighbor() {
		w.complete, w.table.prefix = true, w.table.watchedPrefix()
	}
}

// isPositioned reports whether the node knows its neighbors, and a contact in each farther bucket unless a lookup there
// found none.
func (w *watch) isPositioned() bool {
	if !w.table.joined || !w.complete || w.table.leaving {
		return false
	}
	for d := range min(w.table.prefix, len(w.table.buckets)) {
		if b := &w.table.buckets[d]; len(b.live) == 0 && !b.searched {
			return false
		}
	}
	return true
}

// trustTime returns how long a neighbor that has just heard from this node considers it alive: until its next query,
// and for all its retries.
func (w *watch) trustTime() time.Duration {
	return w.env.cfg.every()*3/4 + time.Duration(w.env.cfg.Tries)*w.env.cfg.Timeout
}

// updateFresh reports until when the node's knowledge holds: until a node that would take its place may consider it
// dead.
func (w *watch) updateFresh() {
	if !w.positioned {
		w.positioned, w.table.changed = w.isPositioned(), true
	}
	if !w.positioned || !w.table.changed && w.table.live > 0 {
		return
	}
	w.table.changed = false
	since := w.env.now
	if d := w.table.successorDepth(); d >= 0 {
		for _, p := range w.table.buckets[d].live {
			if p.near {
				since = min(since, p.confirmed)
			}
		}
	}
	if until := since + w.trustTime(); until > w.env.now && until >= w.fresh+w.env.cfg.Timeout {
		w.fresh = until
		w.env.do(Fresh{Until: w.env.began.Add(until)})
	}
}
