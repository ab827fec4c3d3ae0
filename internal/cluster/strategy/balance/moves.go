package balance

import (
	"cmp"
	"math"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance/split"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// moves tracks hosts that move from nodes with too much work to others.
type moves struct {
	checkAt     time.Time       // time of the next check for moves
	requestedAt time.Time       // time of the current request; zero: none
	requested   map[pair]int    // URLs that nodes should offer and have not offered yet
	inTransit   map[string]move // promised hosts that have not arrived
	lastMove    time.Time       // last promise or arrival of a host
	fruitless   int             // consecutive requests without an offer
	moveTime    time.Duration   // moving average; 0: none measured
}

// A pair is the sender and the receiver of a move.
type pair struct{ from, to strategy.Node }

// A move is the move of a host, with its number of URLs.
type move struct {
	pair
	urls int
}

func newMoves() moves { return moves{requested: map[pair]int{}, inTransit: map[string]move{}} }

// MoveCompleted records that a host has arrived.
func (p *policy) MoveCompleted(host string, _ hosttable.Row) {
	m := &p.moves
	if h, going := m.inTransit[host]; going {
		delete(m.inTransit, host)
		p.addRequested(h.pair, -h.urls)
		m.lastMove = p.Now()
		if !m.requestedAt.IsZero() { // later arrivals have a fetch in progress at the sender
			m.endMove(p.Now().Sub(m.requestedAt))
		}
	}
}

// settled reports whether all moves are included in the nodes' load reports.
func (m *moves) settled(now time.Time) bool {
	return len(m.inTransit) == 0 && now.Sub(m.lastMove) > settling
}

// endMove records the duration of a completed move.
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
	settling  = time.Second // until load reports include a move
	// limit of the wait for offers
	offerPatience = 5 * time.Second
	maxFruitless  = 6 // doublings of the wait after requests without offers
)

// Offered promises the receiver a host that a node offers, unless it must not move.
func (p *policy) Offered(o central.Offer) {
	if p.cfg.Splitter != Exact || !p.Alive(o.To) || o.To == o.From || p.MovedRecently(o.Row, o.To, p.cfg.MinStay) {
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

// addRequested adds URLs to the expected moves between two nodes; a negative number removes them.
func (p *policy) addRequested(by pair, urls int) {
	from, to := p.worker(by.from), p.worker(by.to)
	from.outgoing, to.incoming = max(0, from.outgoing+urls), max(0, to.incoming+urls)
}

// endOffers stops waiting for offers.
func (p *policy) endOffers() {
	for by, urls := range p.moves.requested {
		p.addRequested(by, -urls)
	}
	clear(p.moves.requested)
}

// Withdrawn does nothing, since offers are decided at once.
func (p *policy) Withdrawn(string) {}

// moving reports whether hosts are in transit, or may be offered soon.
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
		clear(m.inTransit) // lost, or the arrival was not reported
		m.endMove(central.MoveTimeout)
	case m.requestedAt.IsZero():
	case p.Now().Sub(m.requestedAt) < offerPatience:
		return true
	default: // no offers
		m.requestedAt = time.Time{}
		p.endOffers()
		m.fruitless = min(m.fruitless+1, maxFruitless)
		m.checkAt = p.Now().Add(p.cfg.MoveTime << m.fruitless)
	}
	return false
}

// rebalance requests moves from nodes that will finish late, if all nodes then finish sooner by more than half of the
// time that a move takes.
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
	keeps := make([]int, len(all)) // URLs that will be fetched during the move, or are in progress
	for i, n := range all {
		left := n.has
		keeps[i] = left
		if late = max(late, n.endsIn); n.endsIn > move.Seconds() {
			during := int(math.Ceil(float64(left) * move.Seconds() / n.endsIn))
			keeps[i] = min(left, max(int(math.Ceil(n.inFlight)), during))
		}
		sum += left - keeps[i]
		f, keep := n.worker.time(), keeps[i]
		n.time = func(n int) float64 { return f(keep + n) }
	}
	if sum == 0 {
		return
	}
	nodes := times(all)
	counts := split.Exact(nodes, sum+p.pool.links)
	for i := range all {
		if counts[i] > 0 || keeps[i] > 0 {
			last = max(last, nodes[i](counts[i]))
		}
	}
	least := max(move.Seconds()/2, leastGain)
	if p.pool.links > 0 && last > p.cfg.MinWork.Seconds()+2*move.Seconds()+longestInFlight(all, last) {
		least = 2*move.Seconds() + last // later pieces may correct it
	}
	if late-last <= least {
		return
	}
	if p.requestMoves(all, keeps, counts) {
		m.requestedAt = p.Now()
	}
}

// longestInFlight returns the longest time, in seconds, that nodes which end after end need for the fetches in
// progress. URLs can only move before their fetch starts.
func longestInFlight(all []*need, end float64) (under float64) {
	for _, n := range all {
		if n.endsIn > end {
			under = max(under, float64(n.load.Fetching)*n.page())
		}
	}
	return under
}

// reportingWorkers returns the nodes with recent load reports; none while a report is older than the last move.
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

// requestMoves requests nodes with too many URLs to offer some to nodes with too few, and reports whether there are
// any.
func (p *policy) requestMoves(all []*need, keeps, counts []int) (asked bool) {
	type lack struct {
		node strategy.Node
		urls int
	}
	var lacks []lack
	order := make([]int, len(all)) // first the nodes with the least work
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(all[i].endsIn, all[j].endsIn) })
	for _, i := range order {
		n := all[i]
		if urls := keeps[i] + counts[i] - n.has; urls > 0 {
			lacks = append(lacks, lack{n.node, urls})
		}
	}
	for i, n := range all {
		for over := n.has - keeps[i] - counts[i]; over > 0 && len(lacks) > 0; {
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
