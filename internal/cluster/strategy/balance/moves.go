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
	checkAt     time.Time       // when it is looked again whether some should
	requestedAt time.Time       // when nodes were asked to give the last time; zero: that is over
	requested   map[pair]int    // URLs that nodes were asked to give, and have not offered
	inTransit   map[string]move // hosts that were promised and have not come
	lastMove    time.Time       // when the last of them was promised, or came
	fruitless   int             // times in a row that nobody has given anything
	moveTime    time.Duration   // the last times, the mean; 0: none has been measured
}

// A pair is who gives and who takes.
type pair struct{ from, to strategy.Node }

// A move is a host's, with so many URLs.
type move struct {
	pair
	urls int
}

func newMoves() moves { return moves{requested: map[pair]int{}, inTransit: map[string]move{}} }

// MoveCompleted is told that a host has come.
func (p *policy) MoveCompleted(host string, _ hosttable.Row) {
	m := &p.moves
	if h, going := m.inTransit[host]; going {
		delete(m.inTransit, host)
		p.addRequested(h.pair, -h.urls)
		m.lastMove = p.Now()
		if !m.requestedAt.IsZero() { // those to which a request is under way come later
			m.endMove(p.Now().Sub(m.requestedAt))
		}
	}
}

// settled reports whether all that has moved stands in what nodes tell.
func (m *moves) settled(now time.Time) bool {
	return len(m.inTransit) == 0 && now.Sub(m.lastMove) > settling
}

// endMove ends a move that has taken so long.
func (m *moves) endMove(took time.Duration) {
	if m.moveTime == 0 {
		m.moveTime = took
	} else {
		m.moveTime += (took - m.moveTime) / 4
	}
	m.moveTime = max(m.moveTime, leastMove)
	m.requestedAt, m.fruitless = time.Time{}, 0
}

const (
	leastMove = 500 * time.Millisecond
	leastGain = 1.0         // seconds
	settling  = time.Second // until what has moved stands in what nodes tell
	// for so long hosts are waited for that are to be offered, and that are to come
	offerPatience = 5 * time.Second
	maxFruitless  = 6 // doublings of the time until nodes are asked again that had nothing to give
)

// Offered grants a host that a node offers, if it may move.
func (p *policy) Offered(o central.Offer) {
	if !p.cfg.Splitter.predicts() || !p.Alive(o.To) || o.To == o.From || p.MovedRecently(o.Row, o.To, p.cfg.MinStay) {
		p.ReplyOwned(o.From, o.Host)
		return
	}
	p.Promise(o)
	p.moves.lastMove = p.Now()
	by := pair{o.From, o.To}
	asked := min(p.moves.requested[by], o.Pending)
	p.moves.requested[by] -= asked
	p.addRequested(by, o.Pending-asked)
	p.moves.inTransit[o.Host] = move{by, o.Pending}
}

// addRequested notes that so many URLs are to go from one node to another; fewer, if that is negative.
func (p *policy) addRequested(by pair, urls int) {
	from, to := p.worker(by.from), p.worker(by.to)
	from.outgoing, to.incoming = max(0, from.outgoing+urls), max(0, to.incoming+urls)
}

// endOffers notes that no more is offered of what was asked for.
func (p *policy) endOffers() {
	for by, urls := range p.moves.requested {
		p.addRequested(by, -urls)
	}
	clear(p.moves.requested)
}

// Withdrawn has nothing to forget: an offer is decided at once.
func (p *policy) Withdrawn(string) {}

// moving reports whether hosts are on their way, or may be soon.
func (p *policy) moving() bool {
	m := &p.moves
	if m.requestedAt.IsZero() || p.Now().Sub(m.requestedAt) >= offerPatience {
		p.endOffers()
	}
	switch {
	case len(m.inTransit) > 0:
		if p.Now().Sub(m.lastMove) < central.MoveTimeout {
			return true
		}
		clear(m.inTransit) // they came to nobody, or this was not told
		m.endMove(central.MoveTimeout)
	case m.requestedAt.IsZero():
	case p.Now().Sub(m.requestedAt) < offerPatience:
		return true
	default: // nobody has offered anything
		m.requestedAt = time.Time{}
		p.endOffers()
		m.fruitless = min(m.fruitless+1, maxFruitless)
		m.checkAt = p.Now().Add(p.cfg.MoveTime << m.fruitless)
	}
	return false
}

// rebalance has nodes that will be done late give hosts to others, if all are done sooner by more than twice what that
// takes.
func (p *policy) rebalance() {
	m := &p.moves
	if m.checkAt.After(p.Now()) {
		return
	}
	m.checkAt = p.Now().Add(p.cfg.Beat / 2)
	if !p.IsSettledFor(p.cfg.Beat) || p.moving() || m.checkAt.Sub(p.Now()) > p.cfg.Beat || p.Gathering() {
		return
	}
	all := p.reportingWorkers()
	if len(all) < 2 {
		return
	}
	move := cmp.Or(m.moveTime, p.cfg.MoveTime)
	late, last, sum := 0.0, 0.0, 0
	keeps := make([]int, len(all)) // what is fetched while hosts move, or under way
	for i, n := range all {
		left := n.left()
		keeps[i] = left
		if late = max(late, n.endsIn); n.endsIn > move.Seconds() {
			keeps[i] = min(left, max(left-n.queued(), int(math.Ceil(float64(left)*move.Seconds()/n.endsIn))))
		}
		sum += left - keeps[i]
		f, keep := n.worker.time(), keeps[i]
		n.time = func(n int) float64 { return f(keep + n) }
	}
	if sum == 0 {
		return
	}
	nodes := times(all)
	counts := p.splitURLs(nodes, sum+p.pool.links)
	for i := range all {
		if counts[i] > 0 || keeps[i] > 0 {
			last = max(last, nodes[i](counts[i]))
		}
	}
	least := max(move.Seconds()/2, leastGain)
	if p.pool.links > 0 && last > p.cfg.MinWork.Seconds()+2*move.Seconds()+longestInFlight(all, last) {
		least = 2*move.Seconds() + last // there is time: what is pooled may make it good
	}
	if late-last <= least {
		return
	}
	if p.requestMoves(all, keeps, counts) {
		m.requestedAt = p.Now()
	}
}

// longestInFlight is how long nodes that end after a time, in seconds, take for what is under way there: what is to be taken
// back must be before it is under way, too.
func longestInFlight(all []*need, end float64) (under float64) {
	for _, n := range all {
		if n.endsIn > end {
			under = max(under, float64(n.load.Fetching)*n.page())
		}
	}
	return under
}

// reportingWorkers are nodes that say what they do; none while one of them has not since hosts have moved.
func (p *policy) reportingWorkers() (all []*need) {
	for _, n := range p.needs() {
		switch silent := p.Now().Sub(n.reportedAt); {
		case silent >= 3*p.cfg.Beat:
		case !p.moves.settled(n.reportedAt):
			return nil
		default:
			all = append(all, n)
		}
	}
	return all
}

// requestMoves has nodes that have more than they should give it to those that have less; it reports whether any has.
func (p *policy) requestMoves(all []*need, keeps, counts []int) (asked bool) {
	type lack struct {
		node strategy.Node
		urls int
	}
	var lacks []lack
	order := make([]int, len(all)) // those that have the least to do first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(all[i].endsIn, all[j].endsIn) })
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
			p.RequestOfferURLs(n.node, l.node, urls)
			p.moves.requested[pair{n.node, l.node}] += urls
			p.addRequested(pair{n.node, l.node}, urls)
			asked = true
			over -= urls
			if l.urls -= urls; l.urls == 0 {
				lacks = slices.Delete(lacks, 0, 1)
			}
		}
	}
	return asked
}
