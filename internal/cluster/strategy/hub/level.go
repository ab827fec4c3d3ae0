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
type level struct {
	loads map[strategy.Node]*load
	sum   int           // of the hosts of all of them
	at    time.Time     // when it is looked again whether hosts should move; not before
	rest  time.Duration // doubled with each move that was not for an idle node
	vain  int           // moves in a row for which nobody has offered a host
	since time.Time     // when the members changed, as far as that was heeded
	begun time.Time     // when the first host of a move was given away
	took  time.Duration // until hosts of the last move had come, at most
	idle  bool          // that was for a node that had nothing
}

// A load is what a node has told of itself.
type load struct {
	node  strategy.Node
	heard time.Time
	hosts int           // where something waits or is under way
	lasts time.Duration // its queue, at the pace at which it works it off; 0: that is not known
	low   int           // times in a row that it had nothing to do, or far less than the mean
	high  int           // that it had far more
}

func newLevel() level { return level{loads: map[strategy.Node]*load{}} }

// When a node is far from the mean: by a share of it and by some hosts, lest chance moves hosts where there are few. A
// node without any is idle, however few others have.
const (
	lowShare   = 0.6  // of the mean
	highShare  = 1.25 // likewise
	giverShare = 0.8  // what a giver that has not too much keeps
	patience   = 3    // reports that say the same
	apart      = 5    // hosts
)

// maxGivers is how many nodes are to offer hosts at once: each is an epoch.
const maxGivers = 4

// hear takes in what a node tells.
func (l *level) hear(now time.Time, e strategy.Load) {
	n := l.loads[e.Node]
	if n == nil {
		n = &load{node: e.Node}
		l.loads[e.Node] = n
	}
	l.sum += e.Hosts - n.hosts
	n.heard, n.hosts, n.lasts = now, e.Hosts, 0
	if e.Rate > 0 {
		n.lasts = time.Duration(min(float64(e.Waiting)/e.Rate, 1e9) * float64(time.Second))
	}
	mean := l.mean()
	if n.low++; !n.isLow(mean) {
		n.low = 0
	}
	if n.high++; !n.isHigh(mean) {
		n.high = 0
	}
}

func (n *load) isLow(mean float64) bool {
	return n.hosts == 0 || float64(n.hosts) < lowShare*mean && mean-float64(n.hosts) >= apart
}

func (n *load) isHigh(mean float64) bool {
	return float64(n.hosts) > highShare*mean && float64(n.hosts)-mean >= apart
}

func (l *level) mean() float64 { return float64(l.sum) / float64(max(1, len(l.loads))) }

// share is a node's hosts where something waits as a share of the mean; 0 if it has told nothing.
func (l *level) share(n strategy.Node) float64 {
	if of := l.loads[n]; of != nil {
		return (float64(of.hosts) + few) / (l.mean() + few)
	}
	return 0
}

// forget lets go of nodes that are none any more, or have told nothing for long.
func (l *level) forget(alive func(strategy.Node) bool, since time.Time) {
	for n, of := range l.loads {
		if !alive(n) || of.heard.Before(since) {
			l.sum -= of.hosts
			delete(l.loads, n)
		}
	}
}

// again has all nodes say anew, several times, how much they have to do, before hosts move.
func (l *level) again() {
	for _, n := range l.loads {
		n.low, n.high = 0, 0
	}
}

// A give is hosts that one node is to offer to another.
type give struct {
	from, to strategy.Node
	hosts    int
}

// plan says which nodes should offer how many hosts to which, so that those that have far too little, or nothing, come
// up to the mean, and those that have far too much come down to it. Few give, and each as many as it can: every giver
// costs an epoch. idle reports whether that is for a node that has nothing.
func (l *level) plan() (gives []give, idle bool) {
	mean := l.mean()
	var givers, takers []*load
	heavy := false
	for _, n := range l.loads {
		heavy = heavy || n.high >= patience
		idle = idle || n.low >= patience && n.hosts == 0
	}
	for _, n := range l.loads {
		if n.low >= patience || heavy && float64(n.hosts)+1 <= mean {
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
		left := min(g.spare(mean), central.MaxGive)
		for i, n := range takers {
			if some := min(left, needs[i]); some > 0 {
				gives = append(gives, give{g.node, n.node, some})
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
	if n.lasts > 0 && n.lasts < shortQueue {
		return 0
	}
	return max(0, min(int(float64(n.hosts)-keep), n.hosts-1))
}

// even has hosts moved to nodes that have little to do, when it is time.
func (p *policy) even() {
	l := &p.level
	if p.cfg.Level < 0 || !l.time(p.Now(), p.Changed()) {
		return
	}
	l.at = p.Now().Add(p.cfg.Beat)
	for host, o := range p.offers {
		if o.until.Add(central.MovePatience).Before(p.Now()) {
			delete(p.offers, host) // who has offered it does not ask any more
		}
	}
	l.forget(p.Alive, p.Now().Add(-10*p.cfg.Beat))
	if !p.Calm(2*p.cfg.Beat) || len(l.loads) < 2 || p.Gathering() || len(p.offers) > 0 {
		return
	}
	gives, idle := l.plan()
	if len(gives) == 0 {
		return
	}
	for _, g := range gives {
		p.Give(g.from, g.to, g.hosts)
	}
	l.again()
	l.rest = min(max(2*l.rest, p.cfg.Level), maxLevel)
	wait := l.rest
	if idle { // it should not wait for long, unless nobody has anything for it
		wait = p.cfg.Level << min(l.vain, 3)
	}
	l.vain++
	l.begun = time.Time{}
	l.idle = idle
	l.at = p.Now().Add(max(wait, l.recovers()))
}

// maxLevel bounds the time between two moves, and for moveShare times as long as a move takes there is none, unless a
// node has nothing.
const (
	maxLevel  = 10 * time.Minute
	moveShare = 3
)

// recovers is for how long nothing moves after a move: hosts rest while they do.
func (l *level) recovers() time.Duration {
	if l.idle {
		return l.took
	}
	return moveShare * l.took
}

// time reports whether it is time to look whether hosts should move: at once where somebody has come or gone.
func (l *level) time(now, changed time.Time) bool {
	if !l.since.Equal(changed) {
		l.since, l.rest, l.vain = changed, 0, 0
		if soon := now.Add(l.took); soon.Before(l.at) {
			l.at = soon
		}
	}
	return !l.at.After(now)
}

// came is told that a host has come that was promised.
func (l *level) came(now time.Time, r hosttable.Row) {
	if r.Round&central.Moved != 0 && !l.begun.IsZero() {
		l.took = now.Sub(l.begun)
		if next := now.Add(l.recovers()); l.at.Before(next) {
			l.at = next
		}
	}
}
