package hub

import (
	"cmp"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// A level is what the control unit knows of how much nodes have to do, and when it has hosts moved to those that have
// little. It is lost with its control unit: nodes tell it again every second.
type balancer struct {
	loads        map[strategy.Node]*load
	totalHosts   int           // of the hosts of all of them
	checkAt      time.Time     // when it is looked again whether hosts should move; not before
	interval     time.Duration // doubled with each move that was not for an idle node
	fruitless    int           // moves in a row for which nobody has offered a host
	membersSince time.Time     // when the members changed, as far as that was heeded
	moveBegan    time.Time     // when the first host of a move was given away
	moveTime     time.Duration // until hosts of the last move had come, at most
	forIdle      bool          // that was for a node that had nothing
}

// A load is what a node has told of itself.
type load struct {
	node       strategy.Node
	reportedAt time.Time
	hosts      int           // where something waits or is under way
	queueTime  time.Duration // its queue, at the pace at which it works it off; 0: that is not known
	lowStreak  int           // times in a row that it had nothing to do, or far less than the mean
	highStreak int           // that it had far more
}

func newLevel() balancer { return balancer{loads: map[strategy.Node]*load{}} }

// When a node is far from the mean: by a share of it and by some hosts, lest chance moves hosts where there are few. A
// node without any is idle, however few others have.
const (
	lowShare      = 0.6  // of the mean
	highShare     = 1.25 // likewise
	giverShare    = 0.8  // what a giver that has not too much keeps
	minReports    = 3    // reports that say the same
	minDifference = 5    // hosts
)

// maxGivers is how many nodes are to offer hosts at once: each is an epoch.
const maxGivers = 4

// update takes in what a node tells.
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

// share is a node's hosts where something waits as a share of the mean; 0 if it has told nothing.
func (l *balancer) share(n strategy.Node) float64 {
	if of := l.loads[n]; of != nil {
		return (float64(of.hosts) + fewHosts) / (l.mean() + fewHosts)
	}
	return 0
}

// forget lets go of nodes that are none any more, or have told nothing for long.
func (l *balancer) forget(alive func(strategy.Node) bool, since time.Time) {
	for n, of := range l.loads {
		if !alive(n) || of.reportedAt.Before(since) {
			l.totalHosts -= of.hosts
			delete(l.loads, n)
		}
	}
}

// again has all nodes say anew, several times, how much they have to do, before hosts move.
func (l *balancer) resetStreaks() {
	for _, n := range l.loads {
		n.lowStreak, n.highStreak = 0, 0
	}
}

// A give is hosts that one node is to offer to another.
type transfer struct {
	from, to strategy.Node
	hosts    int
}

// plan says which nodes should offer how many hosts to which, so that those that have far too little, or nothing, come
// up to the mean, and those that have far too much come down to it. Few give, and each as many as it can: every giver
// costs an epoch. idle reports whether that is for a node that has nothing.
func (l *balancer) plan() (gives []transfer, idle bool) {
	mean := l.mean()
	var givers, takers []*load
	heavy := false
	for _, n := range l.loads {
		heavy = heavy || n.highStreak >= minReports
		idle = idle || n.lowStreak >= minReports && n.hosts == 0
	}
	for _, n := range l.loads {
		if n.lowStreak >= minReports || heavy && float64(n.hosts)+1 <= mean {
			takers = append(takers, n)
		} else if n.spare(mean) > 0 {
			givers = append(givers, n)
		}
	}
	byHosts := func(a, b *load) int { return cmp.Or(cmp.Compare(a.hosts, b.hosts), cmp.Compare(a.node, b.node)) }
	slices.SortFunc(takers, byHosts)
	slices.SortFunc(givers, func(a, b *load) int { return byHosts(b, a) })
	needs := make([]int, len(takers))
	for i, n := range takers {
		needs[i] = int(mean) - n.hosts
	}
	for _, g := range givers[:min(len(givers), maxGivers)] {
		left := min(g.spare(mean), central.MaxOffers)
		for i, n := range takers {
			if some := min(left, needs[i]); some > 0 {
				gives = append(gives, transfer{g.node, n.node, some})
				left, needs[i] = left-some, needs[i]-some
			}
		}
	}
	return gives, idle
}

// shortQueue is what is worked off before a host has moved.
const shortQueue = 5 * time.Second

// spare is how many hosts a node can do without. It keeps one, and what it has done with soon.
func (n *load) spare(mean float64) int {
	keep := giverShare * mean
	if float64(n.hosts) > highShare*mean {
		keep = mean
	}
	if n.queueTime > 0 && n.queueTime < shortQueue {
		return 0
	}
	return max(0, min(int(float64(n.hosts)-keep), n.hosts-1))
}

// balance has hosts moved to nodes that have little to do, when it is time.
func (p *policy) balance() {
	l := &p.balancer
	if p.cfg.BalanceInterval < 0 || !l.isDue(p.Now(), p.MembersChangedAt()) {
		return
	}
	l.checkAt = p.Now().Add(p.cfg.Beat)
	for host, o := range p.offers {
		if o.until.Add(central.MoveTimeout).Before(p.Now()) {
			delete(p.offers, host) // who has offered it does not ask any more
		}
	}
	l.forget(p.Alive, p.Now().Add(-10*p.cfg.Beat))
	if !p.IsSettledFor(2*p.cfg.Beat) || len(l.loads) < 2 || p.Gathering() || len(p.offers) > 0 {
		return
	}
	gives, idle := l.plan()
	if len(gives) == 0 {
		return
	}
	for _, g := range gives {
		p.RequestOffer(g.from, g.to, g.hosts)
	}
	l.resetStreaks()
	l.interval = min(max(2*l.interval, p.cfg.BalanceInterval), maxInterval)
	wait := l.interval
	if idle { // it should not wait for long, unless nobody has anything for it
		wait = p.cfg.BalanceInterval << min(l.fruitless, 3)
	}
	l.fruitless++
	l.moveBegan = time.Time{}
	l.forIdle = idle
	l.checkAt = p.Now().Add(max(wait, l.cooldown()))
}

// maxInterval bounds the time between two moves, and for cooldownFactor times as long as a move takes there is none, unless a
// node has nothing.
const (
	maxInterval    = 10 * time.Minute
	cooldownFactor = 3
)

// cooldown is for how long nothing moves after a move: hosts rest while they do.
func (l *balancer) cooldown() time.Duration {
	if l.forIdle {
		return l.moveTime
	}
	return cooldownFactor * l.moveTime
}

// isDue reports whether it is time to look whether hosts should move: at once where somebody has come or gone.
func (l *balancer) isDue(now, changed time.Time) bool {
	if !l.membersSince.Equal(changed) {
		l.membersSince, l.interval, l.fruitless = changed, 0, 0
		if soon := now.Add(l.moveTime); soon.Before(l.checkAt) {
			l.checkAt = soon
		}
	}
	return !l.checkAt.After(now)
}

// moveCompleted is told that a host has come that was promised.
func (l *balancer) moveCompleted(now time.Time, r hosttable.Row) {
	if r.Round&central.Moved != 0 && !l.moveBegan.IsZero() {
		l.moveTime = now.Sub(l.moveBegan)
		if next := now.Add(l.cooldown()); l.checkAt.Before(next) {
			l.checkAt = next
		}
	}
}
