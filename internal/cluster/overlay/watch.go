package overlay

import (
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
)

// A watch guards the neighbours, the nearest nodes: it pings each of them every few seconds, learns of others by their
// lists, and knows how much of the space around this node it knows completely.
//
// Its messages are nearQuestion and nearAnswer. Invariants: table.prefix grows only when all neighbours have sent their
// lists since one died, and all nodes in those have answered. Fresh never promises more than the neighbours that would
// take this node's place have vouched for.
type watch struct {
	env       *env
	table     *table
	absences  *absences
	questions questions

	complete   bool          // all neighbours have sent their lists since one died
	positioned bool          // they did so once, and each empty bucket was looked up
	fresh      time.Duration // until when Fresh has promised
}

const (
	slack = 16 // a neighbour is asked early by up to a slack of the time between two exchanges, with others
	// forever is later than anything is due.
	forever = time.Duration(1) << 62
)

// interval returns the time until a neighbour that was just heard of is asked again.
func (w *watch) interval() time.Duration {
	every := w.env.cfg.every()
	return every - time.Duration(w.env.rng.Int64N(int64(every)/8))
}

// askAt schedules the next question to a neighbour.
func (w *watch) askAt(p *peer, at time.Duration) {
	p.next = at
	w.table.due = min(w.table.due, at)
}

// leadTime returns by how much work is done before its time, together with other work.
func (w *watch) leadTime() time.Duration { return w.env.cfg.every() / slack }

// askNeighbors pings the neighbours that are due.
func (w *watch) askNeighbors() {
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

// applyList applies a neighbour's list of neighbours: it asks unknown nodes that would be neighbours of this one.
func (w *watch) applyList(p *peer, m parsedMessage) {
	switch {
	case !m.listed:
	case w.tryListed(p.ID, m):
		p.version = m.version
	default:
		p.version = 0 // it sends its list again when there is room
		w.askAt(p, min(p.next, w.env.now+w.env.cfg.Timeout))
	}
}

// tryListed asks those of the nodes that another has listed. It reports whether there was room for all.
func (w *watch) tryListed(teller xor.ID, m parsedMessage) bool {
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
			all = w.questions.try(known, nearQuestion, short(teller)) && all
		}
	}
	return all
}

// requestLists requests all neighbours' lists again: one neighbour died, and there is room for a larger part of the space.
// The lists contain its other nodes. Until all lists are here, prefix stays unchanged.
func (w *watch) requestLists() {
	w.complete = false
	for _, p := range w.table.near {
		p.version = 0
	}
}

// extendPrefix widens prefix when all neighbours' lists are here and the nodes in them have answered.
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

// isPositioned reports whether the node knows its place: its neighbours, and a contact in each farther bucket, unless a
// look-up there found none.
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

// trustTime returns for how long at least a neighbour that has heard of this node does not take it for dead: until it asks
// again, and for all its questions.
func (w *watch) trustTime() time.Duration {
	return w.env.cfg.every()*3/4 + time.Duration(w.env.cfg.Tries)*w.env.cfg.Timeout
}

// updateFresh reports until when the node's knowledge holds: until a node that would take its place may have taken it for
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
