package overlay

import (
	"encoding/binary"
	"time"

	"kumo/internal/base/xor"
)

// questions is the interface through which other parts send queries.
type questions interface {
	send(question) bool
	ping(*peer)
	try(c Contact, kind byte, reporter uint64) bool
	awaitsNeighbor() bool
}

// An exchange manages the queries to other nodes: it sends them, matches answers, and fails those that are not answered
// in time.
//
// Its messages are ping, find and near queries, and their answers. Invariants: at most Config.Questions are in
// progress. An answer counts once, and only from the node that was queried. Queries to nodes that others have reported
// have separate limits, in total and for each reporting node.
type exchange struct {
	env    *env
	table  *table
	open   []question     // in progress
	late   ring[question] // queries that failed last
	number uint32         // of the last query
}

// maxLate is the maximum number of failed queries whose answers still count.
const maxLate = 16

// A question is a query to a node.
type question struct {
	to       Contact
	peer     *peer // the same node, if it was in the table
	asked    time.Duration
	until    time.Duration // deadline
	lookUp   *lookUp       // nil: not part of a lookup
	reporter uint64        // short id of the node that reported the queried one; 0: itself, or in the table
	number   uint32
	kind     byte
	tries    uint8 // failed queries before, if the node is not in the table
	late     bool  // it has failed
	departed bool  // the node has sent a farewell
	healing  bool  // the node may be in another part of a partitioned network
}

// short returns enough of an id to distinguish it from a few others.
func short(id xor.ID) uint64 { return binary.BigEndian.Uint64(id[:]) | 1 }

// send sends a query. It returns false if too many are in progress.
func (x *exchange) send(q question) bool {
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

// ping pings a contact of the table, unless a ping is in progress.
func (x *exchange) ping(p *peer) {
	kind := byte(pingQuestion)
	if p.near {
		kind = nearQuestion
	}
	if !p.pinged && x.send(question{kind: kind, to: p.Contact, peer: p}) {
		p.pinged = true
	}
}

// try sends a query of a kind to a node that is not in the table. It returns false if too many such queries are in
// progress, in total or for nodes that the same reporter has reported.
func (x *exchange) try(c Contact, kind byte, reporter uint64) bool {
	all, same := 0, 0
	for i := range x.open {
		q := &x.open[i]
		switch {
		case q.lookUp != nil:
		case q.to.ID == c.ID:
			return true
		default:
			all++
			if q.reporter == reporter {
				same++
			}
		}
	}
	if all >= 3*x.env.cfg.Neighbors || reporter != 0 && same >= max(x.env.cfg.Neighbors/2, 1) {
		return false
	}
	return x.send(question{kind: kind, to: c, reporter: reporter})
}

// matchAnswer removes and returns the query that a node's message answers. It also accepts a query that failed
// recently, since distant nodes answer late.
func (x *exchange) matchAnswer(node string, m *parsedMessage) (q question, asked bool) {
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

// expire calls failed for the queries that were not answered in time; failed may send others.
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

// failQuestions fails all queries to a node. If there are none, it pings the node if that is in the table.
func (x *exchange) failQuestions(c Contact) {
	p, any := x.table.known(c.Node), false
	for i := range x.open {
		if q := &x.open[i]; q.to.ID == c.ID {
			q.until, any = x.env.now, true // fails at the end of this step
		}
	}
	if p != nil && !any {
		x.ping(p)
	}
}

// dropQuestions fails all queries to a node that has sent a farewell, and ignores its late answers.
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

// awaitsNeighbor reports whether there is an unanswered query to an unknown node that would be a neighbor.
func (x *exchange) awaitsNeighbor() bool {
	for i := range x.open {
		q := &x.open[i]
		if q.lookUp == nil && !q.healing && x.table.known(q.to.Node) == nil && x.table.isNear(q.to.ID) {
			return true
		}
	}
	return false
}

// due returns the next deadline of a query, or at if that is earlier.
func (x *exchange) due(at time.Duration) time.Duration {
	for i := range x.open {
		at = min(at, x.open[i].until)
	}
	return at
}
