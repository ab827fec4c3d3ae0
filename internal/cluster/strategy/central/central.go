package central

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/leader"
)

// A Strategy is that of one node. It is not safe for concurrent use; its views are.
type Strategy struct {
	*clusterState
	*output
	progress
	owners       *owners
	pending      *pendingHosts
	donor        donor
	elector      *leader.Elector
	lead         *Leader // this node's part as leader or as one who would be; nil if it is neither
	wake         [lastTimer]time.Time
	facts        func(told []byte, f *strategy.Status)
	policyStatus []byte    // what the leader has told of its policy
	loadSentAt   time.Time // when the leader was told how much this node has to do
}

// clusterState are what a node knows of its cluster, whether it leads or not.
type clusterState struct {
	cfg              Config
	now              time.Time
	epoch            uint64
	settled          uint64
	settledAt        time.Time                   // since when the epoch is settled
	membersChangedAt time.Time                   // when somebody came or went, the last time
	members          []strategy.Node             // sorted
	alive            map[strategy.Node]bool      // the same
	departed         map[strategy.Node]uint64    // who is none any more, by the epoch under which that was first so
	joined           map[strategy.Node]time.Time // when members came, of those that came while this process knew of others
	joining          []strategy.Node             // nodes that are about to be members
	userData         []byte                      // what a person has given the strategy
}

// Timers.
const (
	nodeTimer uint64 = iota
	leaderTimer
	lastTimer
)

var _ strategy.Strategy = (*Strategy)(nil)

// New returns the strategy of a node that knows nothing yet. What it owned in an earlier process the leader tells it.
// policy makes the Policy of a node that becomes a candidate. facts, if it is not nil, adds what the leader's Policy
// has told this node last to what the node tells people.
func New(cfg Config, policy func(*Leader) Policy, facts func(told []byte, f *strategy.Status)) *Strategy {
	around := &clusterState{cfg: cfg.WithDefaults(), alive: map[strategy.Node]bool{}, departed: map[strategy.Node]uint64{},
		joined: map[strategy.Node]time.Time{}}
	out := &output{packetAt: map[packetKey]int{}}
	s := &Strategy{clusterState: around, output: out, owners: newOwners(around), pending: newPendingHosts(around, out),
		facts: facts}
	s.donor = donor{clusterState: around, output: out, owners: s.owners, pending: s.pending}
	s.elector = leader.New(leader.Config{Self: s.cfg.Self, Beat: s.cfg.Beat, Silence: s.cfg.Silence, Retry: s.cfg.Retry,
		Execute: s.do, LeaderChanged: s.retryAll, Replica: func() leader.Replica {
			s.lead = newLeader(around, out, s.elector, policy)
			return replica{&s.lead.hosts, s.lead}
		}})
	out.begin = s.elector.Begin
	return s
}

// Step takes the events since the last call and appends the actions that it wants done.
func (s *Strategy) Step(now time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	s.now, s.actions = now, out
	for _, e := range in {
		s.applyEvent(e)
	}
	s.advance()
	for range 16 { // words to itself come back in the same step, and may be answered there
		if !s.deliver() {
			break
		}
		s.advance()
	}
	if s.owners.publish() {
		s.do(strategy.ViewChanged{})
	}
	s.setTimers()
	out, s.actions = s.actions, nil
	return out
}

func (s *Strategy) applyEvent(e strategy.Event) {
	switch e := e.(type) {
	case strategy.Members:
		s.setMembers(e)
	case strategy.OwnersNeeded:
		s.ownersNeeded(e)
	case strategy.Held:
		s.heldHosts(e.Hosts)
	case strategy.Surveyed:
		s.surveyed = true
	case strategy.TransfersComplete:
		s.completeEpoch = max(s.completeEpoch, e.Epoch)
	case strategy.ProbeResult:
		s.probeResult(e)
	case strategy.Load:
		s.adaptTimeout(e)
	case strategy.Joining:
		s.joining = slices.Clone(e.Nodes)
	case strategy.UserData:
		s.userData = slices.Clone(e.Data)
	case strategy.QueueList:
		s.donor.offerQueues(e.Queues)
	case strategy.Message:
		s.receive(e)
	case strategy.Fired:
		if e.Timer < lastTimer {
			s.wake[e.Timer] = time.Time{}
		}
	case strategy.Persisted, strategy.LogEntry, strategy.LogEnd:
		s.elector.Apply(s.now, e)
	}
}

// setMembers takes a new list of members in.
func (s *Strategy) setMembers(e strategy.Members) {
	if e.Epoch < s.epoch {
		return
	}
	if was := s.epoch == s.settled; e.Epoch == e.Settled && (!was || e.Epoch != s.epoch) {
		s.settledAt = s.now
	}
	s.epoch, s.settled = e.Epoch, max(e.Settled, s.settled)
	was := s.alive
	if !slices.EqualFunc(s.members, e.Members, func(n strategy.Node, m strategy.Member) bool { return n == m.Node }) {
		s.membersChangedAt = s.now
	}
	s.members, s.alive = s.members[:0:0], make(map[strategy.Node]bool, len(e.Members))
	for _, m := range e.Members {
		s.members = append(s.members, m.Node)
		s.alive[m.Node] = true
		delete(s.departed, m.Node)
		if len(was) > 0 && !was[m.Node] {
			s.joined[m.Node] = s.now
			s.donor.declined = declinedHosts{} // what others did not want it may
		}
	}
	for n := range was {
		if !s.alive[n] {
			s.departed[n] = e.Epoch
			delete(s.joined, n)
			s.owners.forgetNode(n)
		}
	}
	if was[s.cfg.Self] != s.alive[s.cfg.Self] {
		s.resetOwnership()
	}
	s.applyMoves(e.Moves)
	if s.elector.SetMembers(s.now, s.epoch, s.members); !s.elector.Candidate() {
		s.lead = nil
	}
}

func (s *Strategy) receive(e strategy.Message) {
	kind, rest := s.elector.Receive(s.now, e)
	items, err := parseItems(rest)
	switch {
	case err != nil:
	case kind == leader.Question:
		s.lead.handleRequests(e.From, items)
	case kind == leader.Answer:
		s.applyAnswers(items)
	}
}

func (s *Strategy) advance() {
	if s.elector.Advance(s.now); s.elector.Leads() {
		s.lead.advance()
	}
	s.advanceNode()
}

// setTimers asks to be woken when something is due.
func (s *Strategy) setTimers() {
	s.wakeAt(nodeTimer, s.nextDue())
	at := s.elector.NextDue()
	if s.elector.Leads() {
		at = Earliest(at, s.lead.policy.NextDue())
	}
	s.wakeAt(leaderTimer, at)
}

func (s *Strategy) wakeAt(timer uint64, at time.Time) {
	if at.IsZero() {
		return
	}
	if least := s.now.Add(5 * time.Millisecond); at.Before(least) {
		at = least
	}
	if w := s.wake[timer]; !w.IsZero() && w.After(s.now) && !at.Before(w) {
		return // it is woken before
	}
	s.wake[timer] = at
	s.do(strategy.Timer{Timer: timer, At: at})
}

// Earliest is the first of two times; zero is none.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// String says what the node has not settled, for who looks for the reason why.
func (s *Strategy) String() string {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"%s: %v, synced %v, surveyed %v, whole %d, acknowledged %d, unacknowledged %d, probing %d\n",
		s.cfg.Self,
		s.elector,
		s.synced,
		s.surveyed,
		s.completeEpoch,
		s.acknowledged,
		s.pending.unacknowledged,
		s.pending.probing,
	)
	for _, host := range slices.Sorted(maps.Keys(s.pending.hosts)) {
		p := s.pending.hosts[host]
		fmt.Fprintf(&b, "  %s: phase %d, holds %v, owned %v, needsAck %v, round %d, tries %d, to %s, moved %d, in %v\n", host,
			p.phase, p.holds, p.owned, p.needsAck, p.round, p.tries, p.target, p.moveEpoch, p.at.Sub(s.now))
	}
	if l := s.lead; l != nil {
		fmt.Fprintf(&b, "  as leader: batches %d, %v\n", len(l.batches), l.policy)
	}
	return b.String()
}
