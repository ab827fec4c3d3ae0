package mesh

import (
	"math"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// paperBalance is the paper's policy. It moves load from overloaded nodes to underloaded ones, a step at each update,
// like heat diffusion. All nodes update their loads at the same moments: see terms.
//
// A node works on an area of a few blocks of URLs; the excess is counted in such blocks. Its level is the number of
// these, minus the blocks for which its area has room: positive if it is heavy, negative if it is light. A heavy node
// queries the levels of the nodes in its buckets, from near to far (itemLevel). In the first bucket whose levels and
// its own add up to less than 0, it gives its excess to the first light node that has room for all of it. So a node
// with more excess than any node has room for gets no help.
//
// Two things differ from the paper. Its blocks are sets of URLs; here they are whole hosts of about as many URLs, for
// politeness. Room is reserved before anything moves (itemReserve), since two nodes may find the same light one.
//
// Invariants: a node fetches hosts of others only within the room that it has reserved for them. It reserves no more
// than it has.
type paperBalance struct {
	core     *core
	place    *place
	mail     poster
	lending  *lending
	cfg      BalanceConfig
	block    int
	interval time.Duration

	load     Balance
	known    bool // a Load has arrived
	moving   bool
	reserved []reservation
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
	// lightThreshold is the limit, exclusive, of the levels of a heavy and of a light node together, by the paper, which
	// names no number. At 1, the light node's area may become full, but the node does not become heavy.
	lightThreshold = 1
)

// applyTerms sets the size of blocks and the interval between updates.
func (b *paperBalance) applyTerms(t Terms) { b.block, b.interval = t.Block, t.Interval }

func (b *paperBalance) handlers() map[byte]itemHandler {
	return map[byte]itemHandler{itemLevel: atOnce(b.answerLevel), itemReserve: atOnce(b.reserve)}
}

func (b *paperBalance) balance() Balance { return b.load }

// reservedBlocks returns the number of reserved blocks.
func (b *paperBalance) reservedBlocks() (n int) {
	for _, p := range b.reserved {
		n += p.blocks
	}
	return n
}

// loaded processes the engine's load. It computes the level, and starts to move excess load.
func (b *paperBalance) loaded(e Load) {
	l := &b.load
	b.known = true
	l.Waiting, l.Rate, l.Arriving = e.Waiting, e.Rate, e.Arriving
	if l.Area = b.cfg.Area; l.Area == 0 {
		l.Area = AreaOf(e.Arriving, e.Rate, b.interval, b.block)
	}
	l.Level = level(e.Waiting, l.Area, b.block)
	b.reserved = slices.DeleteFunc(b.reserved, func(p reservation) bool { return !b.core.now.Before(p.until) })
	l.Delegated, l.Guests = b.lending.counts()
	if l.Level > 0 && !b.moving && !b.place.leaving && !b.cfg.Off {
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
func (b *paperBalance) queryBucket(i int) {
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
func (b *paperBalance) chooseLight(i int, nodes []strategy.Node, levels map[strategy.Node]int64) {
	sum := int64(b.load.Level)
	for _, l := range levels {
		sum += l
	}
	at := -1
	if sum < 0 || b.cfg.Partial {
		at = slices.IndexFunc(nodes, func(n strategy.Node) bool {
			l, ok := levels[n]
			return ok && l < 0 && (b.cfg.Partial || l+int64(b.load.Level) < lightThreshold)
		})
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
		b.core.do(Spare{To: to, URLs: min(r.number, it.number) * int64(b.block)})
	})
}

// answerLevel replies to an itemLevel with the level, including reserved blocks.
func (b *paperBalance) answerLevel(_ strategy.Node, _ item) reply {
	if !b.known || b.place.leaving {
		return reply{code: replyNo}
	}
	return reply{code: replyYes, number: int64(b.load.Level + b.reservedBlocks())}
}

func (b *paperBalance) reserve(from strategy.Node, it item) reply {
	n := min(it.number, int64(-b.load.Level-b.reservedBlocks()))
	if !b.known || n <= 0 || b.place.leaving {
		return reply{code: replyNo}
	}
	b.reserved = append(b.reserved, reservation{int(n), b.core.now.Add(giveTime), from, int(n) * b.block})
	return reply{code: replyYes, number: n}
}

// spared lends hosts to a light node.
func (b *paperBalance) spared(e Spared) {
	b.moving = false
	for _, host := range e.Hosts {
		b.lending.lend(host, e.To, 0)
	}
}

// admit reports whether a node has room reserved for one more host, and uses it.
func (b *paperBalance) admit(from strategy.Node, _ string, _ int64) bool {
	for i := range b.reserved {
		if p := &b.reserved[i]; p.of == from && p.hosts > 0 && b.core.now.Before(p.until) {
			p.hosts--
			return true
		}
	}
	return false
}
