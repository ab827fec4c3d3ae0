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

// A Strategy is the state machine of one node. It is not safe for concurrent use, but its views are.
type Strategy struct {
	*clusterState
	*output
	progress
	owners       *owners
	pending      *pendingHosts
	donor        donor
	elector      *leader.Elector
	lead         *Leader // the leader's state; nil unless this node is a candidate
	wake         [lastTimer]time.Time
	facts        func(data []byte, f *strategy.Status)
	hostRequests int64     // requests about hosts that this node has received as the leader
	policyStatus []byte    // status data last received from the leader's policy
	loadSentAt   time.Time // time of the last load report to the leader
}

// clusterState is a node's view of the cluster, on leaders and other nodes alike.
type clusterState struct {
	cfg              Config
	now              time.Time
	epoch            uint64
	settled          uint64
	settledAt        time.Time                // start of the time in which the epoch has been settled
	membersChangedAt time.Time                // time of the last join or departure
	members          []strategy.Node          // sorted
	alive            map[strategy.Node]bool   // the same nodes as a set
	departed         map[strategy.Node]uint64 // departed nodes, with the first epoch without them
	// join times, only of nodes that joined after this process had its first member list
	joined   map[strategy.Node]time.Time
	joining  []strategy.Node // nodes that wait to join
	userData []byte          // data that the user supplied for the strategy
}

// Timer numbers.
const (
	nodeTimer uint64 = iota
	leaderTimer
	lastTimer
)

var _ strategy.Strategy = (*Strategy)(nil)

// New returns the strategy of a new node. The leader sends it the hosts that it owned in an earlier process. policy
// creates the Policy when the node becomes a candidate. facts, if not nil, adds the data last received from the
// leader's Policy to the node's Status.
func New(cfg Config, policy func(*Leader) Policy, facts func(data []byte, f *strategy.Status)) *Strategy {
	cluster := &clusterState{cfg: cfg.WithDefaults(), alive: map[strategy.Node]bool{},
		departed: map[strategy.Node]uint64{}, joined: map[strategy.Node]time.Time{}}
	out := &output{packetAt: map[packetKey]int{}}
	s := &Strategy{clusterState: cluster, output: out, owners: newOwners(cluster), pending: newPendingHosts(cluster, out),
		facts: facts}
	s.donor = donor{clusterState: cluster, output: out, owners: s.owners, pending: s.pending}
	s.elector = leader.New(leader.Config{Self: s.cfg.Self, Beat: s.cfg.Beat, Silence: s.cfg.Silence, Retry: s.cfg.Retry,
		Execute: s.do, LeaderChanged: s.retryAll, Replica: func() leader.Replica {
			s.lead = newLeader(cluster, out, s.elector, policy)
			return replica{&s.lead.hosts, s.lead}
		}})
	out.begin = s.elector.Begin
	return s
}

// Step applies the events and appends the resulting actions to out.
func (s *Strategy) Step(now time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	s.now, s.actions = now, out
	for _, e := range in {
		s.applyEvent(e)
	}
	s.advance()
	for range 16 { // messages to itself arrive within the same step, and may cause answers
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

// setMembers applies a new list of members.
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
			s.donor.declined = declinedHosts{} // hosts that others declined may suit the new node
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
		s.countHostRequests(items)
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

// setTimers sets the timers for the next pending work.
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
		return // a timer for an earlier time is set
	}
	s.wake[timer] = at
	s.do(strategy.Timer{Timer: timer, At: at})
}

// Earliest returns the earlier of two times; the zero time means none.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// String describes unsettled state, for debugging.
func (s *Strategy) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v, synced %v, surveyed %v, complete %d, acknowledged %d, unacknowledged %d, probing %d\n",
		s.cfg.Self, s.elector, s.synced, s.surveyed, s.completeEpoch, s.acknowledged, s.pending.unacknowledged,
		s.pending.probing)
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
