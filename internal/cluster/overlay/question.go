package overlay

import (
	"encoding/binary"
	"time"

	"kumo/internal/base/xor"
)

// A question is under way to a node.
type question struct {
	to     Contact
	peer   *peer // the same, if it was in the table
	asked  time.Duration
	until  time.Duration // when it counts as failed
	lookUp *lookUp       // nil: it asks whether the node lives
	teller uint64        // who has told of the node, if it is not in the table: short of its id; 0: itself
	number uint32
	kind   byte
	tries  uint8 // questions to a node that is not in the table that failed before
	late   bool  // it has failed
	vain   bool  // who is asked has said farewell
	healed bool  // it goes to a node that may be of another part of a network that was cut
}

// short is enough of an id to tell it from a few others.
func short(id xor.ID) uint64 { return binary.BigEndian.Uint64(id[:]) | 1 }

// ask sends a question, unless too many are under way.
func (o *Overlay) ask(q question) bool {
	if len(o.questions) >= o.cfg.Questions {
		return false
	}
	o.number++
	q.number, q.asked, q.until = o.number, o.now, o.now+o.cfg.Timeout
	room := 10
	if q.kind == findQuestion {
		room = xor.Size + 1
	}
	w := head(q.kind, q.number, room)
	if q.peer == nil || !q.peer.live {
		q.peer = o.known(q.to.Node)
	}
	switch q.kind {
	case findQuestion:
		id, count := o.id, o.cfg.breadth()
		if q.lookUp != nil {
			id, count = q.lookUp.id, q.lookUp.breadth(&o.cfg)
		}
		w = append(w, id[:]...)
		w.Uint(uint64(count))
	case nearQuestion:
		have := uint32(0)
		if q.peer != nil && q.peer.near {
			have = q.peer.version
		}
		w.Uint(uint64(have))
		w.Uint(uint64(o.version))
	}
	o.questions = append(o.questions, q)
	o.send(q.to, w)
	return true
}

// ping asks a contact whether it lives.
func (o *Overlay) ping(p *peer) {
	kind := byte(pingQuestion)
	if p.near {
		kind = nearQuestion
	}
	if !p.pinged && o.ask(question{kind: kind, to: p.Contact, peer: p}) {
		p.pinged = true
	}
}

// tryNear asks a node that would be a neighbour for its own. It reports whether it is asked, or was in vain before.
func (o *Overlay) tryNear(c Contact, teller uint64) bool {
	return o.try(c, nearQuestion, teller)
}

// try asks a node that is not in the table whether it lives.
func (o *Overlay) try(c Contact, kind byte, teller uint64) bool {
	all, same := 0, 0
	for i := range o.questions {
		q := &o.questions[i]
		switch {
		case q.lookUp != nil:
		case q.to.ID == c.ID:
			return true
		default:
			all++
			if q.teller == teller {
				same++
			}
		}
	}
	if all >= 3*o.cfg.Neighbours || teller != 0 && same >= max(o.cfg.Neighbours/2, 1) {
		return false
	}
	return o.ask(question{kind: kind, to: c, teller: teller})
}

// asked takes the question that a node's message answers from those that are under way, or that have failed lately: who
// is far away answers late.
func (o *Overlay) asked(node string, m *note) (q question, asked bool) {
	for i := range o.questions {
		if o.questions[i].isAnswered(node, m) {
			q = o.questions[i]
			o.drop(i)
			return q, true
		}
	}
	for i := range o.late {
		if o.late[i].isAnswered(node, m) {
			q, o.late[i] = o.late[i], question{}
			return q, true
		}
	}
	return q, false
}

func (q *question) isAnswered(node string, m *note) bool {
	return q.number == m.number && m.kind == q.kind-'a'+'A' && q.to.Node == node
}

// answered takes in an answer.
func (o *Overlay) answered(q question, from Contact, m note) {
	from.ID = q.to.ID
	if len(from.Addrs) == 0 {
		from.Addrs = q.to.Addrs
	}
	p := o.admit(from, q.peer)
	if p != nil {
		p.vouched, o.moved = max(p.vouched, q.asked), true
		if q.lookUp == nil && !q.late {
			p.pinged = false
		}
	}
	switch {
	case m.kind == nearAnswer && p != nil && p.near:
		o.told(p, m)
	case q.healed:
		o.tryTold(from.ID, m)
	case q.lookUp != nil && !q.lookUp.over:
		if q.late {
			q.lookUp.under++ // as before it has failed
		}
		o.advanceWith(q.lookUp, from, m)
	}
}

func (o *Overlay) drop(i int) {
	last := len(o.questions) - 1
	o.questions[i] = o.questions[last]
	o.questions[last] = question{}
	o.questions = o.questions[:last]
}

// expire lets questions fail that have waited for too long.
func (o *Overlay) expire() {
	for i := 0; i < len(o.questions); {
		if o.questions[i].until > o.now {
			i++
			continue
		}
		q := o.questions[i]
		o.drop(i)
		o.failed(q)
		if !q.vain {
			o.awaitLate(q)
		}
	}
}

// awaitLate keeps a question that has failed.
func (o *Overlay) awaitLate(q question) {
	q.late = true
	if len(o.late) < mostLate {
		o.late = append(o.late, q)
		return
	}
	o.late[o.lateAt] = q
	o.lateAt = (o.lateAt + 1) % mostLate
}

// lost lets all questions to a node fail. If there is none, a contact is asked whether it lives.
func (o *Overlay) lost(c Contact) {
	p, any := o.known(c.Node), false
	for i := range o.questions {
		if q := &o.questions[i]; q.to.ID == c.ID {
			q.until, any = o.now, true // it fails at the end of this step
		}
	}
	if p != nil && !any {
		o.ping(p)
	}
}

// forgo lets all questions to a node fail that has said farewell, and waits for no late answers.
func (o *Overlay) forgo(c Contact) {
	for i := range o.questions {
		if q := &o.questions[i]; q.to.ID == c.ID {
			q.until, q.vain = o.now, true
		}
	}
	for i := range o.late {
		if o.late[i].to.ID == c.ID {
			o.late[i] = question{}
		}
	}
}

// failed takes note that a question was not answered.
func (o *Overlay) failed(q question) {
	p := o.known(q.to.Node)
	if q.lookUp != nil && !q.lookUp.over {
		o.missed(q.lookUp, q.to)
	}
	switch {
	case p != nil:
		if q.lookUp == nil {
			p.pinged = false
		}
		lives := p.heard > q.asked && o.hears(p)
		if q.asked >= p.failed && !lives { // questions that were under way together fail as one
			p.fails++
			p.failed = o.now
		}
		switch {
		case int(p.fails) >= o.cfg.Tries:
			o.bury(p, false)
		case !lives, p.near && p.version == 0:
			o.ping(p)
		}
	case q.lookUp != nil || q.healed || q.vain:
	case int(q.tries)+1 < o.cfg.Tries:
		q.tries++
		o.ask(q)
	default:
		o.dropSpare(q.to.ID)
		o.markAbsent(q.to, false)
	}
}
