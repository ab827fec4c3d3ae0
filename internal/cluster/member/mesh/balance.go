package mesh

import (
	"math"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// A Balance is a node's load.
type Balance struct {
	Level     int
	Area      int     // blocks
	Waiting   int64   // URLs
	Rate      float64 // URLs fetched per second
	Arriving  float64 // URLs arriving per second
	Delegated int     // hosts of this node that others fetch
	Guests    int     // hosts of other nodes that this one fetches
}

// A BalanceConfig configures how load moves between nodes.
type BalanceConfig struct {
	Block    int           // URLs in a block of load; 20
	Area     int           // blocks that this node works on; 0: computed from the rates of its Loads
	Interval time.Duration // between two Loads; DefaultInterval
	// transfer load only to buckets that have room for the whole excess, as in the paper
	AllOrNothing bool
}

// A balancer moves load from overloaded nodes to underloaded ones, a step each interval, like heat diffusion.
//
// A node works on an area of a few blocks of URLs; the excess is counted in such blocks. Its level is the number of
// these, minus the blocks for which its area has room: positive if it is heavy, negative if it is light. A heavy node
// queries the levels of the nodes in its buckets, from near to far (itemLevel), and gives the first light node as many
// blocks as it has room for. The blocks of the paper are URLs. Here they are whole hosts, for politeness. Room is
// reserved before anything moves (itemReserve), since two nodes may find the same light one. So a bucket need not have
// room for a node's whole excess. By the paper's rule, AllOrNothing, a node gets no help if its excess is larger than
// any bucket's room.
//
// The target remembers a host that it has lent (itemGive) until the other node has fetched its queue, and returns it
// (itemReturn, itemGuest).
//
// Invariants: a node fetches hosts of others only within the room that it has reserved for them. It reserves no more
// than it has.
type balancer struct {
	core    *core
	place   *place
	mail    poster
	lookups finder
	hosts   balancedHosts
	lent    lent
	pending func(host string) bool // Config.HasPending
	cfg     BalanceConfig

	load     Balance
	known    bool // a Load has arrived
	busy     bool
	moving   bool
	reserved []reservation
	idle     map[string]int // Loads since a guest had pending URLs
}

// balancedHosts is the balancer's view of the hosts that this node fetches.
type balancedHosts interface {
	holds(host string) bool
	// lendable returns a function that lends a host to another node; nil if it cannot be lent.
	lendable(host string) (lend func(to strategy.Node))
	// releaseIfMoved releases a host that is another node's.
	releaseIfMoved(host string)
}

// A reservation is room for blocks of another node. It holds until the hosts that have arrived are part of the level.
type reservation struct {
	blocks int
	until  time.Time
	of     strategy.Node
	hosts  int // hosts that the other node may still give: each has at least one URL
}

const (
	// giveTime is how long hosts may take to arrive at the node that has reserved room for them.
	giveTime = 30 * time.Second
	// guestIdle is the number of Loads without pending URLs of a guest until it is returned.
	guestIdle = 3
)

// reservedBlocks returns the number of reserved blocks.
func (b *balancer) reservedBlocks() (n int) {
	for _, p := range b.reserved {
		n += p.blocks
	}
	return n
}

// loaded processes the engine's load. It computes the level, and starts to move excess load.
func (b *balancer) loaded(e Load) {
	l := &b.load
	b.known, b.busy = true, e.Busy
	l.Waiting, l.Rate, l.Arriving = e.Waiting, e.Rate, e.Arriving
	if l.Area = b.cfg.Area; l.Area == 0 {
		l.Area = AreaOf(e.Arriving, e.Rate, b.cfg.Interval, b.cfg.Block)
	}
	l.Level = level(e.Waiting, l.Area, b.cfg.Block)
	b.reserved = slices.DeleteFunc(b.reserved, func(p reservation) bool { return !b.core.now.Before(p.until) })
	l.Delegated, l.Guests = len(b.lent), len(b.place.view.guests)
	b.returnGuests()
	b.checkLent()
	if l.Level > 0 && b.busy && !b.moving && !b.place.leaving {
		b.moving = true
		b.queryBucket(0)
	}
}

// AreaOf returns the number of blocks that a node works on: the difference, in an interval, between the rates at which
// URLs arrive and are fetched, in URLs per second.
func AreaOf(arriving, rate float64, interval time.Duration, block int) int {
	n := math.Abs(rate-arriving) * interval.Seconds() / float64(block)
	if arriving >= rate {
		n--
	}
	return int(min(max(math.Ceil(n)-1, 1), 1<<20))
}

// level returns a load level: blocks beyond the area, or, negative, blocks for which the area has room.
func level(waiting int64, area, block int) int {
	w := int64(area) * int64(block)
	if waiting >= w {
		return int((waiting - w) / int64(block))
	}
	return -int((w - waiting) / int64(block))
}

// queryBucket queries the levels of the nodes in the first bucket from i on that is not empty.
func (b *balancer) queryBucket(i int) {
	for ; i < b.place.width; i++ {
		nodes := slices.Clone(b.place.overlay.Bucket(b.place.lowest() + i))
		if len(nodes) == 0 {
			continue
		}
		levels := make(map[strategy.Node]int64, len(nodes))
		left := len(nodes)
		for _, n := range nodes {
			b.mail.post(n, item{kind: itemLevel}, func(_ strategy.Node, r *reply) {
				if r != nil && r.code == replyYes {
					levels[n] = r.number
				}
				if left--; left == 0 {
					b.chooseLight(i, nodes, levels)
				}
			})
		}
		return
	}
	b.moving = false
}

// chooseLight reserves room for the excess at a light node of a bucket, or continues with the next bucket.
func (b *balancer) chooseLight(i int, nodes []strategy.Node, levels map[strategy.Node]int64) {
	sum := int64(b.load.Level)
	for _, l := range levels {
		sum += l
	}
	at := -1
	if sum < 0 || !b.cfg.AllOrNothing {
		at = slices.IndexFunc(nodes, func(n strategy.Node) bool { l, ok := levels[n]; return ok && l < 0 })
	}
	if at < 0 || b.load.Level <= 0 {
		b.queryBucket(i + 1)
		return
	}
	it := item{kind: itemReserve, number: int64(b.load.Level)}
	b.mail.post(nodes[at], it, func(to strategy.Node, r *reply) {
		if r == nil || r.code != replyYes || r.number <= 0 {
			b.moving = false
			return
		}
		b.core.do(Spare{To: to, URLs: r.number * int64(b.cfg.Block)})
	})
}

// answerLevel replies to an itemLevel with the level, including reserved blocks.
func (b *balancer) answerLevel(_ strategy.Node, _ item) reply {
	if !b.known || b.place.leaving {
		return reply{code: replyNo}
	}
	return reply{code: replyYes, number: int64(b.load.Level + b.reservedBlocks())}
}

func (b *balancer) reserve(from strategy.Node, it item) reply {
	n := min(it.number, int64(-b.load.Level-b.reservedBlocks()))
	if !b.known || n <= 0 || b.place.leaving {
		return reply{code: replyNo}
	}
	b.reserved = append(b.reserved, reservation{int(n), b.core.now.Add(giveTime), from, int(n) * b.cfg.Block})
	return reply{code: replyYes, number: n}
}

// spared lends hosts to a light node.
func (b *balancer) spared(e Spared) {
	b.moving = false
	for _, host := range e.Hosts {
		lend := b.hosts.lendable(host)
		if lend == nil {
			continue
		}
		b.mail.post(e.To, item{kind: itemGive, host: host}, func(to strategy.Node, r *reply) {
			if r != nil && r.code == replyYes {
				lend(to)
			}
		})
	}
}

// acceptGuest processes an itemGive: this node accepts another node's host if it has room reserved for it.
func (b *balancer) acceptGuest(from strategy.Node, it item) reply {
	if b.place.leaving || !b.place.isFresh() || !b.place.view.guests[it.host] && !b.admit(from) {
		return reply{code: replyNo}
	}
	b.place.setGuest(it.host, true)
	return reply{code: replyYes}
}

// admit reports whether a node has room reserved for one more host, and uses it.
func (b *balancer) admit(from strategy.Node) bool {
	for i := range b.reserved {
		if p := &b.reserved[i]; p.of == from && p.hosts > 0 && b.core.now.Before(p.until) {
			p.hosts--
			return true
		}
	}
	return false
}

// returnGuests returns hosts of other nodes that have had no pending URLs for a while.
func (b *balancer) returnGuests() {
	for _, host := range sortedKeys(b.place.view.guests) {
		if b.pending(host) {
			delete(b.idle, host)
			continue
		}
		if b.idle[host]++; b.idle[host] < guestIdle {
			continue
		}
		delete(b.idle, host)
		b.place.setGuest(host, false)
		b.hosts.releaseIfMoved(host)
		b.lookups.find(b.place.targetID(host), false, func(nodes []strategy.Node) {
			if len(nodes) > 0 && nodes[0] != b.core.self {
				b.mail.post(nodes[0], item{kind: itemReturn, host: host}, func(strategy.Node, *reply) {})
			}
		})
	}
}

func (b *balancer) returned(from strategy.Node, it item) reply {
	if b.lent[it.host] == from {
		delete(b.lent, it.host)
	}
	return reply{code: replyYes}
}

// checkLent takes hosts back from nodes that do not answer, or no longer have them. It forgets hosts whose target is
// another node by now.
func (b *balancer) checkLent() {
	for _, host := range sortedKeys(b.lent) {
		if b.hosts.holds(host) {
			continue // it is still being released
		}
		if !b.place.isTarget(host) {
			delete(b.lent, host)
			continue
		}
		to := b.lent[host]
		b.mail.post(to, item{kind: itemGuest, host: host}, func(_ strategy.Node, r *reply) {
			if (r == nil || r.code != replyYes) && b.lent[host] == to {
				delete(b.lent, host)
			}
		})
	}
}

func (b *balancer) answerGuest(_ strategy.Node, it item) reply {
	if b.place.view.guests[it.host] {
		return reply{code: replyYes}
	}
	return reply{code: replyNo}
}
