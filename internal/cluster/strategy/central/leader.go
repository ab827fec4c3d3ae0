package central

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/leader"
)

// A Leader is what a node that leads, or would, decides by: the table, and what is on its way into it. A Policy calls
// its methods.
type Leader struct {
	*clusterState
	*ledger
	elector      *leader.Elector
	policy       Policy
	electedAt    time.Time     // when it was elected
	silentLeader strategy.Node // who led before, and was not heard since
	// until then, at most, the first hosts of a crawl wait for more members; zero: they do not
	gatherBy time.Time
}

// States of a row.
const (
	Reached  uint8 = iota // its owner reaches the host, or has been left alone with it
	Parked                // its owner is not known to
	Promised              // its owner reaches it, and gets it from another that holds it
)

// Moved in a row's Round, where that is reached or promised, says that the host has moved, or moves, to a node that had
// less to do.
const Moved uint8 = 1 << 7

func newLeader(around *clusterState, out *output, e *leader.Elector, policy func(*Leader) Policy) *Leader {
	l := &Leader{clusterState: around, elector: e, ledger: newLedger(around, out)}
	l.policy = policy(l)
	l.hosts.records = l.policy.Records()
	return l
}

// A replica is a Leader as its elector sees it, with the log's state.
type replica struct {
	*logState
	*Leader
}

var _ leader.Replica = replica{}

// Committed answers what waited for the first batch to be durable.
func (r replica) Committed() { r.committed() }

// Elected begins a term.
func (r replica) Elected(after strategy.Node) {
	l := r.Leader
	l.electedAt = l.now
	if after != "" {
		l.silentLeader = after
	}
	if l.gatherBy = (time.Time{}); l.hosts.table.Len() == 0 && l.cfg.GatherTime > 0 {
		l.gatherBy = l.now.Add(gatherFactor * l.cfg.GatherTime)
	}
	l.policy.Elected()
}

// Deposed forgets what the log does not keep.
func (r replica) Deposed() {
	r.clear()
	r.policy.Deposed()
}

func (l *Leader) advance() {
	l.policy.Advance()
	if l.elector.Ready() && len(l.batches) > 0 {
		l.batches[0].sealed = true
		l.elector.Append(l.batches[0].changes())
	}
}

// Now is the time of the step.
func (l *Leader) Now() time.Time { return l.now }

// ElectedAt is when this node was elected.
func (l *Leader) ElectedAt() time.Time { return l.electedAt }

// Members are those of the crawl, sorted. They are not to be changed.
func (l *Leader) Members() []strategy.Node { return l.members }

// Alive reports whether a node is a member.
func (l *Leader) Alive(n strategy.Node) bool { return l.alive[n] }

// SilentLeader is the leader before this one, if it was not heard since: it may be dead; "" if there is none.
func (l *Leader) SilentLeader() strategy.Node { return l.silentLeader }

// MembersChangedAt is when somebody came or went, the last time.
func (l *Leader) MembersChangedAt() time.Time { return l.membersChangedAt }

// IsSettledFor reports whether the epoch of members is settled, for so long at least.
func (l *Leader) IsSettledFor(d time.Duration) bool {
	return l.epoch == l.settled && l.now.Sub(l.settledAt) >= d
}

// UserData is what a person has given the strategy, to begin with; nil: nothing.
func (l *Leader) UserData() []byte { return l.userData }

// Park gives a host that nobody reaches to a node, which is told to wait when that is durable. failed have not reached
// it.
func (l *Leader) Park(host string, owner strategy.Node, round uint8, failed []strategy.Node, rest time.Duration) {
	l.Set(host, hosttable.Row{Owner: owner, State: Parked, Round: round})
	b := l.batches[len(l.batches)-1]
	if b.reasons == nil {
		b.reasons = map[string]parkReason{}
	}
	b.reasons[host] = parkReason{failed[:min(len(failed), maxFailed)], uint64(l.now.Add(rest).Unix())}
	l.answerWhenDurable(owner, item{kind: itemParked, host: host, number: uint64(rest.Milliseconds())})
}

// maxFailed is how many nodes a note names.
const maxFailed = 8

// Grant gives a host that is nobody's to a node, which is told when that is durable.
func (l *Leader) Grant(host string, to strategy.Node) {
	l.Set(host, hosttable.Row{Owner: to})
	l.promised[to]++
	l.ReplyOwned(to, host)
}

// Promise gives a host that is offered to the node to which it is offered: who has offered it hands it over.
func (l *Leader) Promise(o Offer) {
	l.Set(o.Host, hosttable.Row{Owner: o.To, State: Promised, Round: Moved})
	l.ReplyOwner(o.From, o.Host, o.To)
}

// ReplyOwned tells a node that a host is its own, and that it reaches it: once that is durable.
func (l *Leader) ReplyOwned(n strategy.Node, host string) {
	l.answerWhenDurable(n, item{kind: itemOwned, host: host})
}

// ReplyOwner tells a node whose a host is: once that is durable.
func (l *Leader) ReplyOwner(n strategy.Node, host string, owner strategy.Node) {
	l.answerWhenDurable(n, item{kind: itemOwner, host: host, node: owner})
}

// ReplyOwnedProbe tells a node that a host is its own, and that it should see whether it reaches it: once that is durable.
func (l *Leader) ReplyOwnedProbe(n strategy.Node, host string, round uint8) {
	l.answerWhenDurable(n, item{kind: itemOwnedProbe, host: host, number: uint64(round)})
}

// Wait tells a node to ask again about a host.
func (l *Leader) ReplyWait(n strategy.Node, host string, d time.Duration) {
	l.post(n, item{kind: itemWait, host: host, number: uint64(d.Milliseconds())})
}

// ReplyWaitDurable is Wait once all that is said of the host is durable.
func (l *Leader) ReplyWaitDurable(n strategy.Node, host string, d time.Duration) {
	l.answerWhenDurable(n, item{kind: itemWait, host: host, number: uint64(d.Milliseconds())})
}

// RequestProbe asks a node whether it reaches a host, which all have tried so many times.
func (l *Leader) RequestProbe(n strategy.Node, host string, round uint8) {
	l.post(n, item{kind: itemProbe, host: host, number: uint64(round)})
}

// RequestOffer has a node offer so many of its hosts to another.
func (l *Leader) RequestOffer(from, to strategy.Node, hosts int) {
	l.post(from, item{kind: itemOfferHosts, node: to, number: uint64(hosts)})
}

// RequestOfferURLs has a node offer hosts to another where so many URLs wait, in all.
func (l *Leader) RequestOfferURLs(from, to strategy.Node, urls int) {
	l.post(from, item{kind: itemOfferURLs, node: to, number: uint64(urls)})
}

// SendStatus tells a node what it may tell people of the policy.
func (l *Leader) SendStatus(n strategy.Node, data []byte) {
	l.post(n, item{kind: itemStatus, text: string(data)})
}

// gatherFactor is how many times as long as members must have been the same the first hosts of a crawl wait for that, at
// most.
const gatherFactor = 6

// Gathering reports whether the first hosts of a crawl are not given away yet. All nodes come when a crawl is started,
// but not at the same moment: the first one would get all seeds. Those that are known to come are waited for longer.
func (l *Leader) Gathering() bool {
	if l.gatherBy.IsZero() {
		return false
	}
	if l.nodesJoining() && l.now.Sub(l.electedAt) < l.cfg.JoinTimeout {
		l.gatherBy = l.now.Add(gatherFactor * l.cfg.GatherTime)
		return true
	}
	if l.gatherBy.After(l.now) && (l.epoch != l.settled || l.now.Sub(l.membersChangedAt) < l.cfg.GatherTime) {
		return true
	}
	l.gatherBy = time.Time{}
	return false
}

// nodesJoining reports whether a node is about to be a member.
func (l *Leader) nodesJoining() bool {
	return slices.ContainsFunc(l.joining, func(n strategy.Node) bool { return !l.alive[n] && l.departed[n] == 0 })
}
