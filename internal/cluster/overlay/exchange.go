package overlay

import (
	"encoding/binary"
	"time"

	"kumo/internal/base/xor"
)

// questions are what other parts ask by way of an exchange.
type questions interface {
	ask(question) bool
	ping(*peer)
	try(c Contact, kind byte, teller uint64) bool
	awaitsNeighbor() bool
}

// An exchange guards the questions to other nodes: it sends them, matches answers to them, and lets those fail that are
// not answered in time.
//
// Its messages are ping, find and near questions, and answers. Invariants: at most Config.Questions are under way. An
// answer counts once, and only from the node that was asked. Questions about nodes that others have reported have
// bounds of their own, also by the node that reported them.
type exchange struct {
	env    *env
	table  *table
	open   []question     // under way
	late   ring[question] // the last ones that have failed
	number uint32         // of the last question
}

// maxLate bounds the failed questions of which an answer still counts.
const maxLate = 16

// A question is under way to a node.
type question struct {
	to       Contact
	peer     *peer // the same, if it was in the table
	asked    time.Duration
	until    time.Duration // time of failure
	lookUp   *lookUp       // nil: it asks for a sign of life
	reporter uint64        // short id of the node that reported this one, if it is not in the table; 0: itself
	number   uint32
	kind     byte
	tries    uint8 // failed questions before, if the node is not in the table
	late     bool  // it has failed
	departed bool  // the node has said farewell
	healing  bool  // it goes to a node that may be of another part of a partitioned network
}

// short is enough of an id to tell it from a few others.
func short(id xor.ID) uint64 { return binary.BigEndian.Uint64(id[:]) | 1 }

// ask sends a question. It returns false if too many are under way.
func (x *exchange) ask(q question) bool {
	if len(x.open) >= x.env.cfg.Questions {
		return false
	}
	x.number++
	q.number, q.asked, q.until = x.number, x.env.now, x.env.now+x.env.cfg.Timeout
	room := 10
	if q.kind == findQuestion {
		room = xor.Size + 1
	}
	w := head(q.kind, q.number, room)
	if q.peer == nil || !q.peer.live {
		q.peer = x.table.known(q.to.Node)
	}
	switch q.kind {
	case findQuestion:
		id, count := x.table.id, x.env.cfg.breadth()
		if q.lookUp != nil {
			id, count = q.lookUp.id, q.lookUp.breadth(&x.env.cfg)
		}
		w = append(w, id[:]...)
		w.Uint(uint64(count))
	case nearQuestion:
		have := uint32(0)
		if q.peer != nil && q.peer.near {
			have = q.peer.version
		}
		w.Uint(uint64(have))
		w.Uint(uint64(x.table.version))
	}
	x.open = append(x.open, q)
	x.env.send(q.to, w)
	return true
}

// ping asks a contact of the table for a sign of life.
func (x *exchange) ping(p *peer) {
	kind := byte(pingQuestion)
	if p.near {
		kind = nearQuestion
	}
	if !p.pinged && x.ask(question{kind: kind, to: p.Contact, peer: p}) {
		p.pinged = true
	}
}

// try sends a ping to a node that is not in the table, or asks a node that may be a neighbor for its neighbors. It
// returns false if too many such requests are in flight, or too many for nodes that the same teller has reported.
func (x *exchange) try(c Contact, kind byte, teller uint64) bool {
	all, same := 0, 0
	for i := range x.open {
		q := &x.open[i]
		switch {
		case q.lookUp != nil:
		case q.to.ID == c.ID:
			return true
		default:
			all++
			if q.reporter == teller {
				same++
			}
		}
	}
	if all >= 3*x.env.cfg.Neighbors || teller != 0 && same >= max(x.env.cfg.Neighbors/2, 1) {
		return false
	}
	return x.ask(question{kind: kind, to: c, reporter: teller})
}

// take removes and returns the question that a node's message answers: one that is under way, or that has failed
// lately, as distant nodes answer late.
func (x *exchange) take(node string, m *parsedMessage) (q question, asked bool) {
	for i := range x.open {
		if x.open[i].isAnswered(node, m) {
			q = x.open[i]
			x.drop(i)
			return q, true
		}
	}
	for i := range x.late.all {
		if late := &x.late.all[i]; late.isAnswered(node, m) {
			q, *late = *late, question{}
			return q, true
		}
	}
	return q, false
}

func (x *exchange) drop(i int) {
	last := len(x.open) - 1
	x.open[i] = x.open[last]
	x.open[last] = question{}
	x.open = x.open[:last]
}

// expire passes the questions that were not answered in time to failed, which may ask others.
func (x *exchange) expire(failed func(question)) {
	for i := 0; i < len(x.open); {
		if x.open[i].until > x.env.now {
			i++
			continue
		}
		q := x.open[i]
		x.drop(i)
		failed(q)
		if !q.departed {
			q.late = true
			x.late.add(q, maxLate)
		}
	}
}

// failQuestions lets all questions to a node fail. If there is none, it pings the node if that is in the table.
func (x *exchange) failQuestions(c Contact) {
	p, any := x.table.known(c.Node), false
	for i := range x.open {
		if q := &x.open[i]; q.to.ID == c.ID {
			q.until, any = x.env.now, true // it fails at the end of this step
		}
	}
	if p != nil && !any {
		x.ping(p)
	}
}

// dropQuestions lets all questions to a node fail that has said farewell, and drops late answers.
func (x *exchange) dropQuestions(c Contact) {
	for i := range x.open {
		if q := &x.open[i]; q.to.ID == c.ID {
			q.until, q.departed = x.env.now, true
		}
	}
	for i := range x.late.all {
		if late := &x.late.all[i]; late.to.ID == c.ID {
			*late = question{}
		}
	}
}

func (q *question) isAnswered(node string, m *parsedMessage) bool {
	return q.number == m.number && m.kind == q.kind-'a'+'A' && q.to.Node == node
}

// awaitsNeighbor reports whether an unknown node that would be a neighbour has yet to answer.
func (x *exchange) awaitsNeighbor() bool {
	for i := range x.open {
		q := &x.open[i]
		if q.lookUp == nil && !q.healing && x.table.known(q.to.Node) == nil && x.table.isNear(q.to.ID) {
			return true
		}
	}
	return false
}

// due returns when the next question fails, or a time if that is sooner.
func (x *exchange) due(at time.Duration) time.Duration {
	for i := range x.open {
		at = min(at, x.open[i].until)
	}
	return at
}
