package hub

import (
	"cmp"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// A balancer tracks the load of the nodes, and decides when hosts move to nodes with little work. A new control unit
// starts without this state; nodes report their load every beat.
type balancer struct {
	loads      map[strategy.Node]*load
	totalHosts int       // sum of the loads' hosts
	checkAt    time.Time // time of the next check for moves
	// doubles with each request for moves, up to maxInterval; not waited for while a node is idle
	interval     time.Duration
	fruitless    int           // consecutive moves without an offer
	membersSince time.Time     // last change of members that was handled
	moveBegan    time.Time     // time of the move's first grant
	moveTime     time.Duration // until the move's last host arrived
	forIdle      bool          // the last move was for an idle node
}

// A load is a node's last report.
type load struct {
	node       strategy.Node
	reportedAt time.Time
	hosts      int           // with pending URLs or a fetch in progress
	queueTime  time.Duration // time to work off its queue; 0: unknown
	lowStreak  int           // consecutive reports with no hosts, or far fewer than the mean
	highStreak int           // consecutive reports with far more hosts than the mean
}

func newBalancer() balancer { return balancer{loads: map[strategy.Node]*load{}} }

// A node is far from the mean if it differs by both a share of the mean and minDifference hosts; so random fluctuations
// of small numbers cause no moves. A node without hosts is idle in any case.
const (
	lowShare      = 0.6  // of the mean
	highShare     = 1.25 // of the mean
	donorShare    = 0.8  // share of the mean that a donor keeps, unless it has far too much
	minReports    = 3    // consecutive reports that are required
	minDifference = 5    // hosts
)

// maxDonors is the maximum number of donors at a time, since each takes an epoch.
const maxDonors = 4

// update records a node's load report.
func (l *balancer) update(now time.Time, e strategy.Load) {
	n := l.loads[e.Node]
	if n == nil {
		n = &load{node: e.Node}
		l.loads[e.Node] = n
	}
	l.totalHosts += e.Hosts - n.hosts
	n.reportedAt, n.hosts, n.queueTime = now, e.Hosts, 0
	if e.Rate > 0 {
		n.queueTime = time.Duration(min(float64(e.Pending)/e.Rate, 1e9) * float64(time.Second))
	}
	mean := l.mean()
	if n.lowStreak++; !n.isLow(mean) {
		n.lowStreak = 0
	}
	if n.highStreak++; !n.isHigh(mean) {
		n.highStreak = 0
	}
}

func (n *load) isLow(mean float64) bool {
	return n.hosts == 0 || float64(n.hosts) < lowShare*mean && mean-float64(n.hosts) >= minDifference
}

func (n *load) isHigh(mean float64) bool {
	return float64(n.hosts) > highShare*mean && float64(n.hosts)-mean >= minDifference
}

func (l *balancer) mean() float64 { return float64(l.totalHosts) / float64(max(1, len(l.loads))) }

// share returns a node's number of hosts as a share of the mean, smoothed; 0 without a report.
func (l *balancer) share(n strategy.Node) float64 {
	if of := l.loads[n]; of != nil {
		return (float64(of.hosts) + fewHosts) / (l.mean() + fewHosts)
	}
	return 0
}

// forget drops nodes that have left, or have not reported since a time.
func (l *balancer) forget(alive func(strategy.Node) bool, since time.Time) {
	for n, of := range l.loads {
		if !alive(n) || of.reportedAt.Before(since) {
			l.totalHosts -= of.hosts
			delete(l.loads, n)
		}
	}
}

// resetStreaks requires several new reports of all nodes before hosts move again.
func (l *balancer) resetStreaks() {
	for _, n := range l.loads {
		n.lowStreak, n.highStreak = 0, 0
	}
}

// A transfer is a number of hosts that one node should offer to another.
type transfer struct {
	from, to strategy.Node
	hosts    int
}

// plan returns the transfers that bring nodes with far too few hosts, or none, up to the mean, and nodes with far too
// many down to it. It selects few donors, which each give as much as they can, since every donor takes an epoch. idle
// reports whether a receiver has no hosts.
func (l *balancer) plan() (transfers []transfer, idle bool) {
	mean := l.mean()
	var donors, receivers []*load
	heavy := false
	for _, n := range l.loads {
		heavy = heavy || n.highStreak >= minReports
		idle = idle || n.lowStreak >= minReports && n.hosts == 0
	}
	for _, n := range l.loads {
		if n.lowStreak >= minReports || heavy && float64(n.hosts)+1 <= mean {
			receivers = append(receivers, n)
		} else if n.spare(mean) > 0 {
			donors = append(donors, n)
		}
	}
	byHosts := func(a, b *load) int { return cmp.Or(cmp.Compare(a.hosts, b.hosts), cmp.Compare(a.node, b.node)) }
	slices.SortFunc(receivers, byHosts)
	slices.SortFunc(donors, func(a, b *load) int { return byHosts(b, a) })
	needs := make([]int, len(receivers))
	for i, n := range receivers {
		needs[i] = int(mean) - n.hosts
	}
	for _, g := range donors[:min(len(donors), maxDonors)] {
		left := min(g.spare(mean), central.MaxOffers)
		for i, n := range receivers {
			if some := min(left, needs[i]); some > 0 {
				transfers = append(transfers, transfer{g.node, n.node, some})
				left, needs[i] = left-some, needs[i]-some
			}
		}
	}
	return transfers, idle
}

// shortQueue is the time within which a queue is worked off before a host could move.
const shortQueue = 5 * time.Second

// spare returns the number of hosts that a node can give away. It keeps at least one, and everything if its queue is
// short.
func (n *load) spare(mean float64) int {
	keep := donorShare * mean
	if float64(n.hosts) > highShare*mean {
		keep = mean
	}
	if n.queueTime > 0 && n.queueTime < shortQueue {
		return 0
	}
	return max(0, min(int(float64(n.hosts)-keep), n.hosts-1))
}

// balance requests moves of hosts to nodes with little work, if they are due.
func (p *policy) balance() {
	l := &p.balancer
	if p.cfg.BalanceInterval < 0 || !l.isDue(p.Now(), p.MembersChangedAt()) {
		return
	}
	l.checkAt = p.Now().Add(p.cfg.Beat)
	for host, o := range p.offers {
		if o.until.Add(central.MoveTimeout).Before(p.Now()) {
			delete(p.offers, host) // the donor has stopped offering it
		}
	}
	l.forget(p.Alive, p.Now().Add(-10*p.cfg.Beat))
	if !p.IsSettledFor(2*p.cfg.Beat) || len(l.loads) < 2 || p.Gathering() || len(p.offers) > 0 {
		return
	}
	transfers, idle := l.plan()
	if len(transfers) == 0 {
		return
	}
	for _, g := range transfers {
		p.RequestOffer(g.from, g.to, g.hosts)
	}
	l.resetStreaks()
	l.interval = min(max(2*l.interval, p.cfg.BalanceInterval), maxInterval)
	wait := l.interval
	if idle { // an idle node waits only briefly, unless no donor has anything to offer
		wait = p.cfg.BalanceInterval << min(l.fruitless, 3)
	}
	l.fruitless++
	l.moveBegan = time.Time{}
	l.forIdle = idle
	l.checkAt = p.Now().Add(max(wait, l.cooldown()))
}

// maxInterval bounds the time between two moves. After a move, cooldownFactor times its duration passes before the next
// one, unless a node is idle.
const (
	maxInterval    = 10 * time.Minute
	cooldownFactor = 3
)

// cooldown returns the time without moves after a move, since hosts pause while they move.
func (l *balancer) cooldown() time.Duration {
	if l.forIdle {
		return l.moveTime
	}
	return cooldownFactor * l.moveTime
}

// isDue reports whether a check for moves is due. After a change of members it is due sooner.
func (l *balancer) isDue(now, changed time.Time) bool {
	if !l.membersSince.Equal(changed) {
		l.membersSince, l.interval, l.fruitless = changed, 0, 0
		if soon := now.Add(l.moveTime); soon.Before(l.checkAt) {
			l.checkAt = soon
		}
	}
	return !l.checkAt.After(now)
}

// moveCompleted records that a promised host has arrived.
func (l *balancer) moveCompleted(now time.Time, r hosttable.Row) {
	if r.Round&central.Moved != 0 && !l.moveBegan.IsZero() {
		l.moveTime = now.Sub(l.moveBegan)
		if next := now.Add(l.cooldown()); l.checkAt.Before(next) {
			l.checkAt = next
		}
	}
}
