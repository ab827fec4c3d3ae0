package balance

import (
	"cmp"
	"math"
	"slices"
	"time"

	"kumo/internal/strategy"
	"kumo/internal/strategy/central"
)

// moves are hosts that go from nodes that have too much to others.
type moves struct {
	at    time.Time       // when it is looked again whether some should
	asked time.Time       // when nodes were asked to give the last time; zero: that is over
	going map[string]bool // hosts that were promised and have not come
	last  time.Time       // when the last of them was promised, or came
	vain  int             // times in a row that nobody has given anything
	took  time.Duration   // the last times, the mean; 0: none has been measured
}

func newMoves() moves { return moves{going: map[string]bool{}} }

// came is told that a host has come.
func (m *moves) came(now time.Time, host string) {
	if m.going[host] {
		delete(m.going, host)
		m.last = now
		if !m.asked.IsZero() { // those to which a request is under way come later
			m.end(now.Sub(m.asked))
		}
	}
}

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
	p.moves.going[o.Host], p.moves.last = true, p.Now()
}

// Withdrawn has nothing to forget: an offer is decided at once.
func (p *policy) Withdrawn(string) {}

// moving reports whether hosts are on their way, or may be soon.
func (p *policy) moving() bool {
	m := &p.moves
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
	move := m.took
	if move == 0 {
		move = p.cfg.Move
	}
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
	least := 2 * move.Seconds()
	if p.pool.links > 0 { // what is pooled may make it good yet
		least += last / 4
	}
	if late-last <= least {
		return
	}
	if p.ask(all, keeps, counts) {
		m.asked = p.Now()
	}
}

// fresh are nodes that say what they do; none while one of them has not since hosts have moved, and all that it was given
// has come.
func (p *policy) fresh() (all []*need) {
	for _, n := range p.needs() {
		switch silent := p.Now().Sub(n.heard); {
		case silent >= 3*p.cfg.Beat:
		case n.heard.Sub(p.moves.last) <= settling || n.coming() > 0:
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
			asked = true
			over -= urls
			if l.urls -= urls; l.urls == 0 {
				lacks = slices.Delete(lacks, 0, 1)
			}
		}
	}
	return asked
}
