package leader

import (
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// A Kind is the first byte of a message. The sender's term and the message's number follow, then what it says. All
// messages may be lost, come twice, or late.
type Kind byte

// The kinds of messages that a strategy sends. None is what Receive has dealt with.
const (
	None     Kind = 0
	Question Kind = 'q' // to Leader
	Answer   Kind = 'a' // of the leader; also what nobody has asked for
)

const (
	heartbeat Kind = 'b' // the leader is there
	redirect  Kind = 'n' // another one leads: its name
)

// Begin begins a message. For one node, answers are sent in the order in which they were begun.
func (e *Elector) Begin(k Kind) varint.Writer {
	e.sent++
	w := varint.Writer{byte(k)}
	w.Uint(e.term)
	w.Uint(e.sent)
	return w
}

// Receive takes a message in. What it returns is the strategy's: a question, where this node leads, or an answer of who
// does, and what is behind its beginning.
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
			return None, nil // what an earlier leader has said the present one says again
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
