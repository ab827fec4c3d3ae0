package leader

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// A candidate is the additional state of an Elector on a node that may lead.
type candidate struct {
	*Elector
	replica    Replica
	last       uint64    // number of the last entry read or written
	lastHeader Header    // header of that entry
	heardAt    time.Time // last heartbeat of a leader

	readAt     time.Time // time of the next read
	caughtUp   bool      // the log has been read to its end at least once
	unreadable bool      // an entry has an unknown format; such a node must not lead

	leading     bool
	ledTerm     uint64 // term in which it leads, or which it tries to start
	after       strategy.Node
	confirmedAt time.Time // time at which no other node had written to the log
	beatAt      time.Time
	writing     *writing // write in progress; nil: none

	nextPart int      // part to write next
	written  []uint64 // by part: number of the last entry that contains it
	trimmed  uint64
}

// writing is an entry that is not known to be durable.
type writing struct {
	Entry
	data    []byte
	inDoubt bool // the outcome of the write is unknown
}

func newCandidate(e *Elector) *candidate {
	r := e.cfg.Replica()
	return &candidate{Elector: e, replica: r, heardAt: e.now, readAt: e.now,
		written: make([]uint64, r.Parts())}
}

func (c *candidate) logged(ev strategy.LogEntry) {
	e, err := ParseEntry(ev.Data)
	if err == nil {
		err = e.Load(c.replica)
	}
	if err != nil {
		c.stepDown()
		return
	}
	c.setLast(ev.Number, &e)
	switch own := e.By == c.cfg.Self && e.Term == c.ledTerm; {
	case c.leading && !own:
		c.depose()
	case c.leading && c.writing != nil: // the entry in doubt is in the log
		c.committed()
	}
}

// setLast records the last entry of the log.
func (c *candidate) setLast(number uint64, e *Entry) {
	c.last, c.lastHeader = number, e.Header
	for i := range e.parts {
		part := e.part(c.replica, i)
		c.written[part] = number
		c.nextPart = (part + 1) % len(c.written)
	}
}

func (c *candidate) atEnd() {
	c.caughtUp = true
	c.readAt = c.now.Add(c.cfg.Beat)
	if c.leading { // a leader without changes to write must notice another leader
		c.readAt, c.confirmedAt = c.now.Add(c.cfg.Silence/2), c.now
	}
	if w := c.writing; w != nil && w.inDoubt { // not in the log; if it still arrives, the next write fails
		if c.writing = nil; c.leading {
			c.write(w)
		}
	}
}

func (c *candidate) persisted(ev strategy.Persisted) {
	w := c.writing
	if ev.State != strategy.Durable {
		w.inDoubt = true
		c.readAt = c.now
		if ev.State == strategy.InDoubt {
			c.readAt = c.now.Add(c.cfg.Retry)
		}
		return
	}
	if c.leading {
		c.setLast(ev.Number, &w.Entry)
		if c.replica.Apply(w.Changes) != nil {
			c.stepDown()
			return
		}
		c.confirmedAt = c.now
		c.committed()
		return
	}
	c.writing = nil
	if ev.Number >= c.last { // else another node has started a term since
		c.setLast(ev.Number, &w.Entry)
		c.lead()
	}
}

// committed continues after an entry is durable and applied.
func (c *candidate) committed() {
	c.writing = nil
	c.replica.Committed()
	if least := slices.Min(c.written); least > c.trimmed { // once per cycle
		c.trimmed = least
		c.cfg.Execute(strategy.Trim{Before: least})
	}
}

// campaign tries to start a term.
func (c *candidate) campaign() {
	if c.lastHeader.By != c.cfg.Self {
		c.after = c.lastHeader.By
	}
	c.ledTerm = max(c.lastHeader.Term+1, c.term)
	c.write(&writing{Entry: Entry{Header: c.header()}})
}

func (c *candidate) header() Header { return Header{Term: c.ledTerm, Epoch: c.epoch, By: c.cfg.Self} }

func (c *candidate) write(w *writing) {
	if w.data == nil {
		w.data = w.encode()
	}
	w.inDoubt = false
	c.writing = w
	c.persists++
	c.cfg.Execute(strategy.Persist{ID: c.persists, After: c.last, Data: w.data})
}

// lead starts a term.
func (c *candidate) lead() {
	c.leading = true
	c.follow(c.cfg.Self, c.ledTerm)
	c.beatAt, c.confirmedAt = c.now, c.now
	after := c.after
	c.after = ""
	c.replica.Elected(after)
}

// depose ends a term, since another node has started one.
func (c *candidate) depose() {
	c.leading, c.writing, c.heardAt = false, nil, c.now
	c.replica.Deposed()
}

// stepDown excludes this node from leading.
func (c *candidate) stepDown() {
	c.unreadable = true
	if c.leading {
		c.depose()
	}
	c.writing = nil
}

func (c *candidate) advance() {
	if c.unreadable {
		return
	}
	if c.reader == nil && !c.readAt.After(c.now) {
		c.reader = c
		c.cfg.Execute(strategy.Read{After: c.last})
	}
	switch {
	case c.leading:
		c.beat()
	case c.caughtUp && c.writing == nil && c.reader == nil && c.epoch >= c.lastHeader.Epoch && c.vacant():
		c.campaign()
	}
}

// confirmed reports whether this node leads, and confirmed that recently by reading or writing the log.
func (c *candidate) confirmed() bool { return c.leading && c.now.Sub(c.confirmedAt) < 2*c.cfg.Silence }

// vacant reports whether this node should try to lead, because the leader is silent or has left.
func (c *candidate) vacant() bool {
	rank := slices.Index(c.candidates(), c.cfg.Self)
	if rank < 0 || c.lastHeader.By == c.cfg.Self {
		return rank >= 0
	}
	if slices.Contains(c.members[:rank], c.lastHeader.By) {
		rank-- // the silent leader does not compete
	}
	patience := c.cfg.Silence + time.Duration(rank)*c.cfg.Silence/2
	if !c.member(c.lastHeader.By) { // the leader has left, or there has been none
		patience = time.Duration(rank) * c.cfg.Silence / 4
	}
	return c.now.Sub(c.heardAt) >= patience
}

func (c *candidate) beat() {
	if c.beatAt.After(c.now) {
		return
	}
	c.beatAt = c.now.Add(c.cfg.Beat)
	for _, n := range c.candidates() {
		if n != c.cfg.Self {
			c.cfg.Execute(strategy.Send{To: n, Data: c.Begin(heartbeat)})
		}
	}
}

// Ready reports whether this node leads and may call Append.
func (e *Elector) Ready() bool { return e.Leads() && e.candidate.writing == nil }

// Append writes changes to the log. When they are durable, they are applied and Committed is called. If the term ends
// first, Deposed is called, and the changes may be in the log or not. The Elector must be Ready.
func (e *Elector) Append(changes []byte) {
	c := e.candidate
	w := &writing{Entry: Entry{Header: c.header(), Changes: changes}}
	w.addParts(c.replica, c.nextPart)
	c.write(w)
}
