package leader

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// A candidate is what an Elector has besides on a node that may lead.
type candidate struct {
	*Elector
	replica    Replica
	last       uint64    // number of the last entry that was read or written
	lastHeader Header    // of it
	heardAt    time.Time // from who leads, or would have been

	readAt     time.Time // when it is looked for more
	caughtUp   bool      // all has been read at least once
	unreadable bool      // an entry is: of another version. Who cannot read it does not lead

	leading     bool
	ledTerm     uint64 // the term that it leads, or tries to
	after       strategy.Node
	confirmedAt time.Time // when nobody else had written anything
	beatAt      time.Time
	writing     *writing // what is being written

	nextPart int      // the part to be written next
	written  []uint64 // by part: number of the last entry that has it
	trimmed  uint64
}

// writing is an entry that is not known to be durable.
type writing struct {
	Entry
	data    []byte
	inDoubt bool // it is not known whether it was written
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
	case c.leading && c.writing != nil: // what was in doubt was written after all
		c.committed()
	}
}

// setLast notes the log's last entry.
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
	if c.leading { // who has nothing to write would not learn that another one leads
		c.readAt, c.confirmedAt = c.now.Add(c.cfg.Silence/2), c.now
	}
	if w := c.writing; w != nil && w.inDoubt { // it was not, and if it comes yet, what is written next will not
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
	if ev.Number >= c.last { // else somebody has begun another term since
		c.setLast(ev.Number, &w.Entry)
		c.lead()
	}
}

// committed goes on when what was written is durable and applied.
func (c *candidate) committed() {
	c.writing = nil
	c.replica.Committed()
	if least := slices.Min(c.written); least > c.trimmed { // once a circle
		c.trimmed = least
		c.cfg.Execute(strategy.Trim{Before: least})
	}
}

// campaign tries to begin a term.
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

// lead begins a term.
func (c *candidate) lead() {
	c.leading = true
	c.follow(c.cfg.Self, c.ledTerm)
	c.beatAt, c.confirmedAt = c.now, c.now
	after := c.after
	c.after = ""
	c.replica.Elected(after)
}

// depose ends a term that another node has ended.
func (c *candidate) depose() {
	c.leading, c.writing, c.heardAt = false, nil, c.now
	c.replica.Deposed()
}

// stepDown leaves it to the others to lead.
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

// confirmed reports whether this node leads, and was not the only one to say so not long ago.
func (c *candidate) confirmed() bool { return c.leading && c.now.Sub(c.confirmedAt) < 2*c.cfg.Silence }

// vacant reports whether nobody leads, as far as this node knows.
func (c *candidate) vacant() bool {
	rank := slices.Index(c.candidates(), c.cfg.Self)
	if rank < 0 || c.lastHeader.By == c.cfg.Self {
		return rank >= 0
	}
	if slices.Contains(c.members[:rank], c.lastHeader.By) {
		rank-- // who is silent is not waited for
	}
	patience := c.cfg.Silence + time.Duration(rank)*c.cfg.Silence/2
	if !c.member(c.lastHeader.By) { // gone, or there has been none
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

// Ready reports whether this node leads, and Append may be called.
func (e *Elector) Ready() bool { return e.Leads() && e.candidate.writing == nil }

// Append has changes written. When they are durable they are applied, and Committed is called; if the term ends before,
// Deposed is: then they may be in the log or not. Only who is Ready appends.
func (e *Elector) Append(changes []byte) {
	c := e.candidate
	w := &writing{Entry: Entry{Header: c.header(), Changes: changes}}
	w.addParts(c.replica, c.nextPart)
	c.write(w)
}
