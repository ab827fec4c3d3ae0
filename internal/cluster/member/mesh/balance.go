package mesh

import (
	"math"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// Load goes from nodes that have too much to do to nodes that have too little, a step every Config.Interval, as heat
// does. A node works on an area of a few blocks of Config.Block URLs; what it has beyond them is counted in such
// blocks. Its level is the number of these, less the blocks that its area has free: positive where it is heavy,
// negative where it is light. A heavy node asks the nodes of its buckets for their levels, from near to far, and gives
// the first light node as many blocks as that has room for. The paper's blocks are URLs; here they are whole hosts, as
// politeness wants it, and room is reserved before anything moves, as two may find the same light node. So a bucket
// need not have room for all that a node has too much: by the paper's rule, Config.AllOrNothing, a node that has more
// than any bucket has room for is not helped any more. What is given away stays known to the target as a delegation
// until it is drained, and comes back then.

// A Balance is what a node's load is.
type Balance struct {
	Level     int
	Area      int     // blocks
	Waiting   int64   // URLs
	Rate      float64 // URLs a second that are fetched
	Arriving  float64 // URLs a second that come
	Delegated int     // hosts of this node's that others fetch
	Guests    int     // hosts of others' that this node fetches
}

type balance struct {
	Balance
	known    bool // loads were told
	busy     bool
	reserved []promise
	moving   bool
	quiet    map[string]int           // how long nothing has waited of a guest
	away     map[string]strategy.Node // who fetches hosts of this node's
}

// A promise is blocks for which another node has reserved room. It holds until what has come is part of the level.
type promise struct {
	blocks int
	until  time.Time
	to     strategy.Node
	hosts  int // that it may give yet: each has at least a URL
}

// promised is for how many blocks room is promised.
func (b *balance) promised() (n int) {
	for _, p := range b.reserved {
		n += p.blocks
	}
	return n
}

// loaded takes what the engine has to do, and computes the level.
func (m *Machine) loaded(e Load) {
	b := &m.balance
	b.known, b.busy = true, e.Busy
	b.Waiting, b.Rate, b.Arriving = e.Waiting, e.Rate, e.Arriving
	if b.Area = m.cfg.Area; b.Area == 0 {
		b.Area = AreaOf(e.Arriving, e.Rate, m.cfg.Interval, m.cfg.Block)
	}
	b.Level = level(e.Waiting, b.Area, m.cfg.Block)
	b.reserved = slices.DeleteFunc(b.reserved, func(p promise) bool { return !m.now.Before(p.until) })
	b.Delegated, b.Guests = len(b.away), len(m.view.in)
	m.returnGuests()
	m.lookAfterDelegated()
	if b.Level > 0 && b.busy && !b.moving && !m.leaving {
		b.moving = true
		m.askBucket(m.lowest())
	}
}

// AreaOf is how many blocks a node works on, by the rates, in URLs a second, at which they come and are fetched: as
// many as make the difference in an interval.
func AreaOf(arriving, rate float64, interval time.Duration, block int) int {
	n := math.Abs(rate-arriving) * interval.Seconds() / float64(block)
	if arriving >= rate {
		n--
	}
	return int(min(max(math.Ceil(n)-1, 1), 1<<20))
}

// level is a load level: blocks beyond the area, or, negative, blocks for which the area has room.
func level(waiting int64, area, block int) int {
	w := int64(area) * int64(block)
	if waiting >= w {
		return int((waiting - w) / int64(block))
	}
	return -int((w - waiting) / int64(block))
}

// askBucket asks the nodes of the next bucket that has some for their levels.
func (m *Machine) askBucket(i int) {
	b := &m.balance
	for ; i < m.lowest()+m.cfg.Width; i++ {
		if nodes := m.cfg.Overlay.Bucket(i); len(nodes) > 0 {
			levels := make(map[strategy.Node]int64, len(nodes))
			nodes = slices.Clone(nodes)
			left := len(nodes)
			for _, n := range nodes {
				m.post(n, item{kind: itemLevel}, func(_ strategy.Node, r *reply) {
					if r != nil && r.code == replyYes {
						levels[n] = r.number
					}
					if left--; left == 0 {
						m.chooseLight(i, nodes, levels)
					}
				})
			}
			return
		}
	}
	b.moving = false
}

// chooseLight reserves room at a light node of a bucket for what this node has too much, as far as it has some.
func (m *Machine) chooseLight(i int, nodes []strategy.Node, levels map[strategy.Node]int64) {
	b := &m.balance
	sum := int64(b.Level)
	for _, l := range levels {
		sum += l
	}
	at := -1
	if sum < 0 || !m.cfg.AllOrNothing {
		at = slices.IndexFunc(nodes, func(n strategy.Node) bool { l, ok := levels[n]; return ok && l < 0 })
	}
	if at < 0 || b.Level <= 0 {
		m.askBucket(i + 1)
		return
	}
	m.post(nodes[at], item{kind: itemReserve, number: int64(b.Level)}, func(to strategy.Node, r *reply) {
		if r == nil || r.code != replyYes || r.number <= 0 {
			b.moving = false
			return
		}
		m.do(Spare{To: to, URLs: r.number * int64(m.cfg.Block)})
	})
}

// tellLevel answers with the level, less what is promised.
func (m *Machine) tellLevel(answer func(reply)) {
	b := &m.balance
	if !b.known || m.leaving {
		answer(reply{code: replyNo})
		return
	}
	answer(reply{code: replyYes, number: int64(b.Level + b.promised())})
}

// givingTakes is how long hosts may be on their way to who has reserved room for them.
const givingTakes = 30 * time.Second

// reserve promises room for blocks, as far as there is some.
func (m *Machine) reserve(from strategy.Node, it item, answer func(reply)) {
	b := &m.balance
	n := min(it.number, int64(-b.Level-b.promised()))
	if !b.known || n <= 0 || m.leaving {
		answer(reply{code: replyNo})
		return
	}
	b.reserved = append(b.reserved, promise{int(n), m.now.Add(givingTakes), from, int(n) * m.cfg.Block})
	answer(reply{code: replyYes, number: n})
}

// spared gives hosts to a light node.
func (m *Machine) spared(e Spared) {
	m.balance.moving = false
	for _, host := range e.Hosts {
		g := m.held[host]
		if g == nil || g.stopping || m.view.in[host] || m.balance.away[host] != "" || !m.closest(g.id) {
			continue
		}
		m.post(e.To, item{kind: itemGive, host: host}, func(to strategy.Node, r *reply) {
			if r == nil || r.code != replyYes || m.held[host] != g || g.stopping {
				return
			}
			g.to = to
			m.balance.away[host] = to
			m.stop(g)
		})
	}
}

// takeGuest takes a host to be fetched here though another node is the closest: one of a node that has reserved room, and
// for which there is some.
func (m *Machine) takeGuest(from strategy.Node, it item, answer func(reply)) {
	if m.leaving || !m.now.Before(m.fresh) || !m.view.in[it.host] && !m.balance.admitsGuest(from, m.now) {
		answer(reply{code: replyNo})
		return
	}
	m.change(ins, it.host, true)
	answer(reply{code: replyYes})
}

// admitsGuest reports whether a node was promised room for one more host, and counts it.
func (b *balance) admitsGuest(from strategy.Node, now time.Time) bool {
	for i := range b.reserved {
		if p := &b.reserved[i]; p.to == from && p.hosts > 0 && now.Before(p.until) {
			p.hosts--
			return true
		}
	}
	return false
}

func ins(v *View) *map[string]bool { return &v.in }

// guestQuiet is for how many loads nothing waits of a guest before it is given back.
const guestQuiet = 3

// returnGuests gives back hosts of others of which nothing waits any more.
func (m *Machine) returnGuests() {
	b := &m.balance
	for _, host := range sortedKeys(m.view.in) {
		if m.cfg.Waits(host) {
			delete(b.quiet, host)
			continue
		}
		if b.quiet[host]++; b.quiet[host] < guestQuiet {
			continue
		}
		delete(b.quiet, host)
		m.change(ins, host, false)
		if g := m.held[host]; g != nil && !g.stopping && !m.fetches(g) {
			m.stop(g)
		}
		m.find(m.target(host), false, func(nodes []strategy.Node) {
			if len(nodes) > 0 && nodes[0] != m.cfg.Self {
				m.post(nodes[0], item{kind: itemReturn, host: host}, func(strategy.Node, *reply) {})
			}
		})
	}
}

// returned takes a delegation back.
func (m *Machine) returned(from strategy.Node, it item, answer func(reply)) {
	if m.balance.away[it.host] == from {
		delete(m.balance.away, it.host)
	}
	answer(reply{code: replyYes})
}

// lookAfterDelegated ends delegations to nodes that do not answer, or have the host no more, and those of hosts that
// are another node's by now.
func (m *Machine) lookAfterDelegated() {
	b := &m.balance
	for _, host := range sortedKeys(b.away) {
		if m.held[host] != nil {
			continue // it is on its way
		}
		if !m.closest(m.target(host)) {
			delete(b.away, host)
			continue
		}
		to := b.away[host]
		m.post(to, item{kind: itemGuest, host: host}, func(_ strategy.Node, r *reply) {
			if (r == nil || r.code != replyYes) && b.away[host] == to {
				delete(b.away, host)
			}
		})
	}
}

// hasGuest says whether a host of the sender's is fetched here.
func (m *Machine) hasGuest(it item, answer func(reply)) {
	if m.view.in[it.host] {
		answer(reply{code: replyYes})
	} else {
		answer(reply{code: replyNo})
	}
}
