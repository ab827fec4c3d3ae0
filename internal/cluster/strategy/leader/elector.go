package leader

import (
	"fmt"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// Candidates is the number of members that hold a replica and may lead.
const Candidates = 3

// State is the replicated state, into which entries of the log are loaded.
type State interface {
	// Parts returns the number of parts of the state, at least 1. It never changes.
	Parts() int
	// AppendPart appends a part, numbered from 0, to b. Parts of an empty state may be empty.
	AppendPart(b []byte, part int) []byte
	// LoadPart replaces a part by the result of AppendPart. It does not retain b.
	LoadPart(part int, b []byte) error
	// Apply applies the changes of one entry. It does not retain them.
	Apply(changes []byte) error
}

// A Replica is the state on a candidate, with the callbacks of a leader. The Elector calls its methods.
type Replica interface {
	State
	// Elected starts a term of this node. after is the previous leader, which has been silent or has left; "" if there
	// was none or it was this node.
	Elected(after strategy.Node)
	// Committed is called when the last Append is durable and applied.
	Committed()
	// Deposed ends the term: another node leads.
	Deposed()
}

// Config configures an Elector.
type Config struct {
	Self    strategy.Node
	Beat    time.Duration // between heartbeats of the leader, and between reads of the log
	Silence time.Duration // time without a heartbeat after which another candidate takes over
	Retry   time.Duration // a request unanswered for four times as long goes to another candidate

	Execute       func(strategy.Action) // executes Send, Persist, Read and Trim
	Replica       func() Replica        // returns an empty replica, when this node becomes a candidate
	LeaderChanged func()                // another leader or a new term: unanswered requests may be sent again
}

// An Elector is one node's part in the election, and on candidates in the log. It is not safe for concurrent use.
type Elector struct {
	cfg     Config
	now     time.Time
	epoch   uint64
	members []strategy.Node

	leader          strategy.Node // destination of requests
	term            uint64        // highest known term
	lastAnswer      uint64        // number of the last answer in that term
	sent            uint64        // messages sent
	askedAt         time.Time     // time of the first unanswered request; zero: none
	candidatesTried int           // since the last answer

	candidate *candidate // nil: this node is not a candidate
	reader    *candidate // candidate that reads the log, possibly an earlier one; nil: none
	persists  uint64     // number of Persist actions
}

// New returns the Elector of a new node.
func New(cfg Config) *Elector { return &Elector{cfg: cfg} }

// SetMembers sets the members, sorted, of an epoch that never decreases. It retains members. A node that is not a
// member neither leads nor sends requests.
func (e *Elector) SetMembers(now time.Time, epoch uint64, members []strategy.Node) {
	e.now, e.epoch, e.members = now, epoch, members
	switch first := slices.Contains(e.candidates(), e.cfg.Self); {
	case first && e.candidate == nil:
		e.candidate = newCandidate(e)
	case !first && !(e.Leads() && e.member(e.cfg.Self)): // a leader continues as long as it is a member
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

// Leads reports whether this node considers itself the leader.
func (e *Elector) Leads() bool { return e.candidate != nil && e.candidate.leading }

// Leader returns the destination of requests: the leader if it is known, else a candidate that may know it; "" if there
// is none.
func (e *Elector) Leader() strategy.Node { return e.leader }

// RequestSent records that a request was sent to Leader. If no answer arrives, Leader becomes another candidate.
func (e *Elector) RequestSent(now time.Time) {
	if e.askedAt.IsZero() {
		e.askedAt = now
	}
}

// Apply applies the outcome of a Persist or Read.
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

// Advance runs the pending work.
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

// NextDue returns the time by which Advance must be called; zero: none. Advance must also be called when requests are
// repeated.
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

// follow sets the leader.
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

// String describes the state, for debugging.
func (e *Elector) String() string {
	s := fmt.Sprintf("leader %s, term %d", e.leader, e.term)
	if c := e.candidate; c != nil {
		s += fmt.Sprintf(", leads %v, led %d, last %d by %v, reading %v, writing %v, unreadable %v", c.leading, c.ledTerm,
			c.last, c.lastHeader, c.reader == c, c.writing != nil, c.unreadable)
	}
	return s
}
