package leader

import (
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// A Kind is the first byte of a message. It is followed by the sender's term, the message's number, and the content.
// Messages may be lost, duplicated or delayed.
type Kind byte

// Kinds of messages of a strategy. None means that Receive has handled the message.
const (
	None     Kind = 0
	Question Kind = 'q' // to Leader
	Answer   Kind = 'a' // from the leader, also unsolicited
)

const (
	heartbeat Kind = 'b' // the leader is alive
	redirect  Kind = 'n' // name of the leader
)

// Begin starts a message. Answers to one node must be sent in the order in which they were begun.
func (e *Elector) Begin(k Kind) varint.Writer {
	e.sent++
	w := varint.Writer{byte(k)}
	w.Uint(e.term)
	w.Uint(e.sent)
	return w
}

// Receive handles a message. It returns the content of messages for the strategy: requests if this node leads, and
// answers of the leader.
func (e *Elector) Receive(now time.Time, m strategy.Message) (Kind, []byte) {
	e.now = now
	r := varint.Reader{Rest: m.Data}
	kind, term, number := Kind(r.Byte()), r.Uint(), r.Uint()
	switch {
	case r.Bad:
	case kind == Question:
		if e.candidate != nil && e.candidate.confirmed() {
			return Question, r.Rest
		}
		if e.leader != "" && e.leader != e.cfg.Self && m.From != e.cfg.Self {
			w := e.Begin(redirect)
			w.String(string(e.leader))
			e.cfg.Execute(strategy.Send{To: m.From, Data: w})
		}
	case term < e.term:
	case kind == Answer:
		if term == e.term && number <= e.lastAnswer {
			return None, nil // outdated; the current leader repeats its answers
		}
		e.follow(m.From, term)
		e.lastAnswer, e.askedAt, e.candidatesTried = number, time.Time{}, 0
		return Answer, r.Rest
	case kind == heartbeat:
		e.follow(m.From, term)
		if e.candidate != nil {
			e.candidate.heardAt = now
		}
	case kind == redirect:
		if to := strategy.Node(r.String()); r.Complete() && e.member(to) {
			e.follow(to, term)
		}
	}
	return None, nil
}
