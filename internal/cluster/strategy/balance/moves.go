package balance

import (
	"cmp"
	"math"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// moves are hosts that go from nodes that have too much to others.
type moves struct {
	at    time.Time       // when it is looked again whether some should
	asked time.Time       // when nodes were asked to give the last time; zero: that is over
	asks  map[pair]int    // URLs that nodes were asked to give, and have not offered
	going map[string]move // hosts that were promised and have not come
	last  time.Time       // when the last of them was promised, or came
	vain  int             // times in a row that nobody has given anything
	took  time.Duration   // the last times, the mean; 0: none has been measured
}

// A pair is who gives and who takes.
type pair struct{ from, to strategy.Node }

// A move is a host's, with so many URLs.
type move struct {
	pair
	urls int
}

func newMoves() moves { return moves{asks: map[pair]int{}, going: map[string]move{}} }

// Came is told that a host has come.
func (p *policy) Came(host string, _ hosttable.Row) {
	m := &p.moves
	if h, going := m.going[host]; going {
		delete(m.going, host)
		p.shift(h.pair, -h.urls)
		m.last = p.Now()
		if !m.asked.IsZero() { // those to which a request is under way come later
			m.end(p.Now().Sub(m.asked))
		}
	}
}

// settled reports whether all that has moved stands in what nodes tell.
func (m *moves) settled(now time.Time) bool { return len(m.going) == 0 && now.Sub(m.last) > settling }

// end ends a move that has taken so long.
func (m *moves) end(took time.Duration) {
	if m.took == 0 {
		m.took = took
	} else {
		m.took += (took - m.took) / 4
	}
	m.took = max(m.took, leastMove)
	m.asked, m.vain = time.Time{}, 0
}

const (
	leastMove = 500 * time.Millisecond
	leastGain = 1.0         // seconds
	settling  = time.Second // until what has moved stands in what nodes tell
	// for so long hosts are waited for that are to be offered, and that are to come
	offerPatience = 5 * time.Second
	maxVain       = 6 // doublings of the time until nodes are asked again that had nothing to give
)

// Offered grants a host that a node offers, if it may move.
func (p *policy) Offered(o central.Offer) {
	if !p.cfg.Splitter.predicts() || !p.Alive(o.To) || o.To == o.From || p.Stays(o.Row, o.To, p.cfg.Stay) {
		p.Yours(o.From, o.Host)
		return
	}
	p.Promise(o)
	p.moves.last = p.Now()
	by := pair{o.From, o.To}
	asked := min(p.moves.asks[by], o.Waiting)
	p.moves.asks[by] -= asked
	p.shift(by, o.Waiting-asked)
	p.moves.going[o.Host] = move{by, o.Waiting}
}

// shift notes that so many URLs are to go from one node to another; fewer, if that is negative.
func (p *policy) shift(by pair, urls int) {
	from, to := p.worker(by.from), p.worker(by.to)
	from.leaves, to.comes = max(0, from.leaves+urls), max(0, to.comes+urls)
}

// offered notes that no more is offered of what was asked for.
func (p *policy) offered() {
	for by, urls := range p.moves.asks {
		p.shift(by, -urls)
	}
	clear(p.moves.asks)
}

// Withdrawn has nothing to forget: an offer is decided at once.
func (p *policy) Withdrawn(string) {}

// moving reports whether hosts are on their way, or may be soon.
func (p *policy) moving() bool {
	m := &p.moves
	if m.asked.IsZero() || p.Now().Sub(m.asked) >= offerPatience {
		p.offered()
	}
	switch {
	case len(m.going) > 0:
		if p.Now().Sub(m.last) < central.MovePatience {
			return true
		}
		clear(m.going) // they came to nobody, or this was not told
		m.end(central.MovePatience)
	case m.asked.IsZero():
	case p.Now().Sub(m.asked) < offerPatience:
		return true
	default: // nobody has offered anything
		m.asked = time.Time{}
		p.offered()
		m.vain = min(m.vain+1, maxVain)
		m.at = p.Now().Add(p.cfg.Move << m.vain)
	}
	return false
}

// takeBack has nodes that will be done late give hosts to others, if all are done sooner by more than twice what that
// takes.
func (p *policy) takeBack() {
	m := &p.moves
	if m.at.After(p.Now()) {
		return
	}
	m.at = p.Now().Add(p.cfg.Beat / 2)
	if !p.Calm(p.cfg.Beat) || p.moving() || m.at.Sub(p.Now()) > p.cfg.Beat || p.Gathering() {
		return
	}
	all := p.fresh()
	if len(all) < 2 {
		return
	}
	move := cmp.Or(m.took, p.cfg.Move)
	late, last, sum := 0.0, 0.0, 0
	keeps := make([]int, len(all)) // what is fetched while hosts move, or under way
	for i, n := range all {
		left := n.left()
		keeps[i] = left
		if late = max(late, n.ends); n.ends > move.Seconds() {
			keeps[i] = min(left, max(left-n.queued(), int(math.Ceil(float64(left)*move.Seconds()/n.ends))))
		}
		sum += left - keeps[i]
		f, keep := n.worker.time(), keeps[i]
		n.time = func(n int) float64 { return f(keep + n) }
	}
	if sum == 0 {
		return
	}
	nodes := times(all)
	counts := p.counts(nodes, sum+p.pool.links)
	for i := range all {
		if counts[i] > 0 || keeps[i] > 0 {
			last = max(last, nodes[i](counts[i]))
		}
	}
	least := max(move.Seconds()/2, leastGain)
	if p.pool.links > 0 && last > p.cfg.Lead.Seconds()+2*move.Seconds()+longest(all, last) {
		least = 2*move.Seconds() + last // there is time: what is pooled may make it good
	}
	if late-last <= least {
		return
	}
	if p.ask(all, keeps, counts) {
		m.asked = p.Now()
	}
}

// longest is how long nodes that end after a time, in seconds, take for what is under way there: what is to be taken
// back must be before it is under way, too.
func longest(all []*need, end float64) (under float64) {
	for _, n := range all {
		if n.ends > end {
			under = max(under, float64(n.load.Fetching)*n.page())
		}
	}
	return under
}

// fresh are nodes that say what they do; none while one of them has not since hosts have moved.
func (p *policy) fresh() (all []*need) {
	for _, n := range p.needs() {
		switch silent := p.Now().Sub(n.heard); {
		case silent >= 3*p.cfg.Beat:
		case !p.moves.settled(n.heard):
			return nil
		default:
			all = append(all, n)
		}
	}
	return all
}

// ask has nodes that have more than they should give it to those that have less; it reports whether any has.
func (p *policy) ask(all []*need, keeps, counts []int) (asked bool) {
	type lack struct {
		node strategy.Node
		urls int
	}
	var lacks []lack
	order := make([]int, len(all)) // those that have the least to do first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(all[i].ends, all[j].ends) })
	for _, i := range order {
		n := all[i]
		if urls := keeps[i] + counts[i] - n.left(); urls > 0 {
			lacks = append(lacks, lack{n.node, urls})
		}
	}
	for i, n := range all {
		for over := n.left() - keeps[i] - counts[i]; over > 0 && len(lacks) > 0; {
			l := &lacks[0]
			urls := min(over, l.urls)
			p.GiveURLs(n.node, l.node, urls)
			p.moves.asks[pair{n.node, l.node}] += urls
			p.shift(pair{n.node, l.node}, urls)
			asked = true
			over -= urls
			if l.urls -= urls; l.urls == 0 {
				lacks = slices.Delete(lacks, 0, 1)
			}
		}
	}
	return asked
}
