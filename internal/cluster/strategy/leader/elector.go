package leader

import (
	"fmt"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// Candidates is how many members hold a replica, one of which leads.
const Candidates = 3

// State is what a log is about: what an Entry can be loaded into.
type State interface {
	// Parts is how many parts the state has, at least 1; always the same.
	Parts() int
	// AppendPart appends a part, from 0, to b. An empty state's may be empty.
	AppendPart(b []byte, part int) []byte
	// LoadPart replaces a part by what AppendPart has written. It does not keep b.
	LoadPart(part int, b []byte) error
	// Apply makes the changes of one entry. It does not keep them.
	Apply(changes []byte) error
}

// A Replica is the state on a candidate, and its part as leader. Its methods are called from within the Elector's.
type Replica interface {
	State
	// Elected begins a term of this node. after is the leader before it, which has fallen silent or is gone; "" if there
	// was none, or this node itself.
	Elected(after strategy.Node)
	// Committed is told that the last Append is durable and was applied.
	Committed()
	// Deposed ends the term: another one leads.
	Deposed()
}

// Config is what an Elector is made of.
type Config struct {
	Self    strategy.Node
	Beat    time.Duration // between two words of the leader to the other candidates, and two readings of the log
	Silence time.Duration // after so long without one, one of them takes its place
	Retry   time.Duration // for four times as long an answer is waited for before another candidate is asked

	Execute       func(strategy.Action) // carries out Send, Persist, Read and Trim
	Replica       func() Replica        // an empty one: this node becomes a candidate
	LeaderChanged func()                // another node leads, or a new term: what has no answer yet may be asked anew at once
}

// An Elector is one node's part in the election, and on candidates in the log. It is not safe for concurrent use.
type Elector struct {
	cfg     Config
	now     time.Time
	epoch   uint64
	members []strategy.Node

	leader          strategy.Node // whom to ask
	term            uint64        // the highest that was heard of
	lastAnswer      uint64        // number of the last answer in that term
	sent            uint64        // messages
	askedAt         time.Time     // what has no answer yet was asked for then; zero: there is no such
	candidatesTried int           // candidates since the last answer

	candidate *candidate // nil: this node is none
	reader    *candidate // for which the log is being read, perhaps one before; nil: it is not
	persists  uint64     // that were ever asked for
}

// New returns the Elector of a node that knows nothing yet.
func New(cfg Config) *Elector { return &Elector{cfg: cfg} }

// SetMembers says who takes part, sorted, under an epoch that does not shrink; members is kept. A node that is none of
// them neither leads nor asks.
func (e *Elector) SetMembers(now time.Time, epoch uint64, members []strategy.Node) {
	e.now, e.epoch, e.members = now, epoch, members
	switch first := slices.Contains(e.candidates(), e.cfg.Self); {
	case first && e.candidate == nil:
		e.candidate = newCandidate(e)
	case !first && !(e.Leads() && e.member(e.cfg.Self)): // who leads goes on as long as it is a member
		e.candidate = nil
	}
	if !e.member(e.leader) {
		e.leader = ""
	}
}

func (e *Elector) candidates() []strategy.Node { return e.members[:min(len(e.members), Candidates)] }

func (e *Elector) member(n strategy.Node) bool {
	_, is := slices.BinarySearch(e.members, n)
	return is
}

// Candidate reports whether this node has a replica.
func (e *Elector) Candidate() bool { return e.candidate != nil }

// Leads reports whether this node believes that it leads.
func (e *Elector) Leads() bool { return e.candidate != nil && e.candidate.leading }

// Leader is whom to ask: who leads, as far as this node knows, or a candidate that may know; "" if there is none.
func (e *Elector) Leader() strategy.Node { return e.leader }

// RequestSent notes that Leader was asked for an answer. If none comes, another candidate becomes Leader.
func (e *Elector) RequestSent(now time.Time) {
	if e.askedAt.IsZero() {
		e.askedAt = now
	}
}

// Apply takes in what became of a Persist or a Read.
func (e *Elector) Apply(now time.Time, ev strategy.Event) {
	e.now = now
	c, reads := e.candidate, e.candidate != nil && e.candidate == e.reader
	switch ev := ev.(type) {
	case strategy.LogEntry:
		if reads && ev.Number > c.last && !c.unreadable {
			c.logged(ev)
		}
	case strategy.LogEnd:
		if e.reader = nil; reads {
			c.atEnd()
		}
	case strategy.Persisted:
		if c != nil && c.writing != nil && ev.ID == e.persists {
			c.persisted(ev)
		}
	}
}

// Advance does what is due.
func (e *Elector) Advance(now time.Time) {
	e.now = now
	if e.candidate != nil {
		e.candidate.advance()
	}
	if first := e.candidates(); e.member(e.cfg.Self) && (e.leader == "" ||
		!e.askedAt.IsZero() && now.Sub(e.askedAt) >= 4*e.cfg.Retry) {
		e.leader = first[e.candidatesTried%len(first)]
		e.candidatesTried++
		e.askedAt = time.Time{}
	}
}

// NextDue is when Advance should be called at the latest, beside each time that a question without an answer is repeated;
// zero: never.
func (e *Elector) NextDue() (at time.Time) {
	c := e.candidate
	if c == nil || c.unreadable {
		return at
	}
	if c.reader == nil {
		at = c.readAt
	}
	if c.leading && (at.IsZero() || c.beatAt.Before(at)) {
		at = c.beatAt
	}
	return at
}

// follow notes who leads.
func (e *Elector) follow(n strategy.Node, term uint64) {
	if e.leader == n && e.term == term {
		return
	}
	if e.Leads() && term > e.candidate.ledTerm {
		e.candidate.depose()
	}
	if term > e.term {
		e.lastAnswer = 0
	}
	e.leader, e.term, e.askedAt = n, term, time.Time{}
	e.cfg.LeaderChanged()
}

// String says how things stand, for who looks for the reason why.
func (e *Elector) String() string {
	s := fmt.Sprintf("leader %s, term %d", e.leader, e.term)
	if c := e.candidate; c != nil {
		s += fmt.Sprintf(
			", leads %v, led %d, last %d by %v, reading %v, writing %v, unreadable %v",
			c.leading,
			c.ledTerm,
			c.last,
			c.lastHeader,
			c.reader == c,
			c.writing != nil,
			c.unreadable,
		)
	}
	return s
}
