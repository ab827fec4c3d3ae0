package central

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/leader"
)

// A Leader is the state of a candidate: the table and the changes that are not in the log yet. A Policy uses its
// methods to decide.
type Leader struct {
	*clusterState
	*ledger
	elector      *leader.Elector
	policy       Policy
	electedAt    time.Time     // when it was elected
	silentLeader strategy.Node // the previous leader, if it has sent nothing since
	// deadline of the wait for more members before a crawl's first hosts are assigned; zero: no wait
	gatherBy time.Time
}

// States of a row in the table.
const (
	Reached  uint8 = iota // the owner reaches the host, or got it after all nodes had failed
	Parked                // the owner may not reach the host
	Promised              // the host is moving to its owner
)

// Moved is a bit of Round in rows that are reached or promised: the host has moved, or is moving, because its new owner
// had less work.
const Moved uint8 = 1 << 7

func newLeader(cluster *clusterState, out *output, e *leader.Elector, policy func(*Leader) Policy) *Leader {
	l := &Leader{clusterState: cluster, elector: e, ledger: newLedger(cluster, out)}
	l.policy = policy(l)
	l.hosts.records = l.policy.Records()
	return l
}

// A replica combines a Leader with the log's state, for the elector.
type replica struct {
	*logState
	*Leader
}

var _ leader.Replica = replica{}

// Committed sends the answers that waited for the first batch.
func (r replica) Committed() { r.committed() }

// Elected starts a term.
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

// Deposed drops all changes that are not in the log.
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

// Now returns the time of the current step.
func (l *Leader) Now() time.Time { return l.now }

// ElectedAt returns the time at which this node was elected.
func (l *Leader) ElectedAt() time.Time { return l.electedAt }

// Members returns the crawl's members, sorted. The caller must not modify them.
func (l *Leader) Members() []strategy.Node { return l.members }

// Alive reports whether a node is a member.
func (l *Leader) Alive(n strategy.Node) bool { return l.alive[n] }

// SilentLeader returns the previous leader if it has sent nothing since, because it may be dead; "" if there is none.
func (l *Leader) SilentLeader() strategy.Node { return l.silentLeader }

// MembersChangedAt returns the time of the last join or departure.
func (l *Leader) MembersChangedAt() time.Time { return l.membersChangedAt }

// IsSettledFor reports whether the epoch of members has been settled for at least d.
func (l *Leader) IsSettledFor(d time.Duration) bool {
	return l.epoch == l.settled && l.now.Sub(l.settledAt) >= d
}

// UserData returns the data that the user supplied for the strategy; nil if there is none.
func (l *Leader) UserData() []byte { return l.userData }

// Park makes a node the owner of a host that no node reaches, and sends it the time until the next attempt when the
// change is durable. failed are the nodes that could not reach the host.
func (l *Leader) Park(host string, owner strategy.Node, round uint8, failed []strategy.Node, rest time.Duration) {
	l.Set(host, hosttable.Row{Owner: owner, State: Parked, Round: round})
	b := l.batches[len(l.batches)-1]
	if b.reasons == nil {
		b.reasons = map[string]parkReason{}
	}
	b.reasons[host] = parkReason{failed[:min(len(failed), maxFailed)], uint64(l.now.Add(rest).Unix())}
	l.answerWhenDurable(owner, item{kind: itemParked, host: host, number: uint64(rest.Milliseconds())})
}

// maxFailed is the maximum number of failed nodes in a parkReason.
const maxFailed = 8

// Grant assigns a host without an owner to a node, which is informed when the change is durable.
func (l *Leader) Grant(host string, to strategy.Node) {
	l.Set(host, hosttable.Row{Owner: to})
	l.promised[to]++
	l.ReplyOwned(to, host)
}

// Promise assigns an offered host to its receiver; the node that offered it then hands it over.
func (l *Leader) Promise(o Offer) {
	l.Set(o.Host, hosttable.Row{Owner: o.To, State: Promised, Round: Moved})
	l.ReplyOwner(o.From, o.Host, o.To)
}

// ReplyOwned informs a node that it owns a host and reaches it, as soon as that is durable.
func (l *Leader) ReplyOwned(n strategy.Node, host string) {
	l.answerWhenDurable(n, item{kind: itemOwned, host: host})
}

// ReplyOwner informs a node of a host's owner, as soon as that is durable.
func (l *Leader) ReplyOwner(n strategy.Node, host string, owner strategy.Node) {
	l.answerWhenDurable(n, item{kind: itemOwner, host: host, node: owner})
}

// ReplyOwnedProbe informs a node that it owns a host and must probe it, as soon as that is durable.
func (l *Leader) ReplyOwnedProbe(n strategy.Node, host string, round uint8) {
	l.answerWhenDurable(n, item{kind: itemOwnedProbe, host: host, number: uint64(round)})
}

// ReplyWait asks a node to repeat its request about a host after d.
func (l *Leader) ReplyWait(n strategy.Node, host string, d time.Duration) {
	l.post(n, item{kind: itemWait, host: host, number: uint64(d.Milliseconds())})
}

// ReplyWaitDurable is ReplyWait as soon as all changes of the host are durable.
func (l *Leader) ReplyWaitDurable(n strategy.Node, host string, d time.Duration) {
	l.answerWhenDurable(n, item{kind: itemWait, host: host, number: uint64(d.Milliseconds())})
}

// RequestProbe requests a node to probe a host; round counts the failed attempts by all nodes.
func (l *Leader) RequestProbe(n strategy.Node, host string, round uint8) {
	l.post(n, item{kind: itemProbe, host: host, number: uint64(round)})
}

// RequestOffer requests a node to offer a number of its hosts to another one.
func (l *Leader) RequestOffer(from, to strategy.Node, hosts int) {
	l.post(from, item{kind: itemOfferHosts, node: to, number: uint64(hosts)})
}

// RequestOfferURLs requests a node to offer hosts with a total number of pending URLs to another one.
func (l *Leader) RequestOfferURLs(from, to strategy.Node, urls int) {
	l.post(from, item{kind: itemOfferURLs, node: to, number: uint64(urls)})
}

// SendStatus sends a node the policy's data for its Status.
func (l *Leader) SendStatus(n strategy.Node, data []byte) {
	l.post(n, item{kind: itemStatus, text: string(data)})
}

// gatherFactor times GatherTime bounds the wait for more members before a crawl's first hosts are assigned.
const gatherFactor = 6

// Gathering reports whether the assignment of a crawl's first hosts must still wait. When a crawl starts, its nodes
// join at slightly different times, and without the wait the first one would get all seeds. The wait is longer for
// nodes that are known to be joining.
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

// nodesJoining reports whether a node waits to join.
func (l *Leader) nodesJoining() bool {
	return slices.ContainsFunc(l.joining, func(n strategy.Node) bool { return !l.alive[n] && l.departed[n] == 0 })
}
