package mesh

import (
	"cmp"
	"slices"
	"time"

	"kumo/internal/base/splitmix"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// timeBalance is the default policy. It has all nodes finish their pending URLs at the same time.
//
// A node's backlog is the time for which its pending URLs use its whole rate: see BacklogOf. A node whose backlog is
// nearly over is hungry. It queries the backlogs of a few nodes (itemBacklog): near ones, random ones, and sometimes
// those around a random id, so that load mixes in a large network. Then it requests hosts from the one with the longest
// backlog (itemRequest). That node lends so many hosts that both will finish at the same time. A fruitless search is
// repeated after a pause, which doubles.
//
// A node remembers the hungry nodes that have queried it in vain. When it has more work, it offers them some
// (itemOffer), so that their long pauses do no harm.
//
// Hosts do not move to and fro: each move must shorten the time until the later of the two nodes is done by more than
// minGain, and a guest stays for minStay. So the sum of all these times falls with each move.
//
// Invariants: a node accepts a host only from a node that it has sent a request, and about as many URLs as it may lend.
// Hosts that are on their way count for the node that receives them, not for the one that lends them.
type timeBalance struct {
	core    *core
	place   *place
	mail    poster
	lookups finder
	lending *lending
	pending func(host string) bool // Config.HasPending

	load  Load
	known bool // a Load has arrived

	// as a hungry node
	searching bool
	nextAt    time.Time     // no search before this time
	pause     time.Duration // after the next fruitless search
	rounds    int           // fruitless searches since the last success
	cursor    int           // position in the list of known nodes, from near to far
	requested map[strategy.Node]allowance
	arriving  map[string]transit // hosts that this node has accepted

	// as a node with work
	hungry   []hungryNode
	granting *grant
	leaving  map[string]transit // hosts that other nodes are about to accept
}

// A transit is a host on its way to another node.
type transit struct {
	urls  int64
	until time.Time // when it no longer counts
}

// An allowance is the room for hosts of a node that was sent a request.
type allowance struct {
	urls  int64 // a host counts as at least one
	until time.Time
}

// A hungryNode is a node that has little work.
type hungryNode struct {
	node  strategy.Node
	until time.Time
}

// A grant is a request of another node that waits for the engine's answer to Spare.
type grant struct {
	to     strategy.Node
	urls   int64
	until  time.Time
	answer func(reply)
}

const (
	// hungerAt is the backlog below which a node requests hosts. They arrive after one to three seconds.
	hungerAt = 5 * time.Second
	// minGain is the least difference of two backlogs for which hosts move.
	minGain = 4 * time.Second
	// maxGrant limits the URLs that move at once, by the time that the receiver takes to fetch them.
	maxGrant = 2 * time.Minute
	// transitTime is how long a host may be on its way.
	transitTime = 10 * time.Second
	// requestTime is how long hosts may arrive after a request.
	requestTime = 10 * time.Second
	grantTime   = 3 * time.Second // for the engine's answer to Spare

	firstPause   = time.Second
	longestPause = 32 * time.Second
	askedNear    = 2 // nodes that a search queries, from near to far
	askedRandom  = 2 // and at random
	// farSearch is the interval, in fruitless searches, of those around a random id.
	farSearch = 4

	hungerTime   = 2 * time.Minute // for which a hungry node is remembered
	maxHungry    = 16              // remembered
	offersAtOnce = 2               // of a node, for each Load
)

func newTimeBalance(c *core, p *place, mail poster, f finder, l *lending, pending func(string) bool) *timeBalance {
	return &timeBalance{core: c, place: p, mail: mail, lookups: f, lending: l, pending: pending, pause: firstPause,
		requested: map[strategy.Node]allowance{}, arriving: map[string]transit{}, leaving: map[string]transit{}}
}

func (b *timeBalance) handlers() map[byte]itemHandler {
	return map[byte]itemHandler{itemBacklog: atOnce(b.answerBacklog), itemRequest: b.request, itemOffer: atOnce(b.offered)}
}

func (b *timeBalance) balance() Balance {
	x := Balance{Waiting: b.load.Waiting, Rate: b.load.Rate, Arriving: b.load.Arriving, Backlog: b.load.Backlog}
	x.Delegated, x.Guests = b.lending.counts()
	return x
}

// loaded updates the backlog, and searches for work or offers some.
func (b *timeBalance) loaded(e Load) {
	b.load, b.known = e, true
	b.expire()
	switch {
	case b.place.leaving:
	case b.isHungry():
		b.search()
	default:
		b.pause, b.rounds, b.nextAt = firstPause, 0, time.Time{}
		b.offerWork()
	}
}

// expire removes what no longer counts as on its way: hosts that have arrived or left, by the new Load, or are lost.
func (b *timeBalance) expire() {
	now := b.core.now
	over := func(until time.Time) bool { return !now.Before(until) }
	for host, t := range b.arriving {
		if over(t.until) || b.pending(host) {
			delete(b.arriving, host)
		}
	}
	for host, t := range b.leaving {
		if over(t.until) || !b.lending.hosts.holds(host) {
			delete(b.leaving, host)
		}
	}
	for n, a := range b.requested {
		if over(a.until) {
			delete(b.requested, n)
		}
	}
	b.hungry = slices.DeleteFunc(b.hungry, func(h hungryNode) bool { return over(h.until) })
	if b.granting != nil && over(b.granting.until) {
		b.refuse()
	}
}

// backlog returns the backlog, with hosts that are about to arrive and without those that are about to leave.
func (b *timeBalance) backlog() time.Duration {
	if b.load.Rate <= 0 {
		return 0
	}
	moving := int64(0) // an integer: the order of the hosts must not change the result
	for _, t := range b.arriving {
		moving += t.urls
	}
	for _, t := range b.leaving {
		moving -= t.urls
	}
	if b.granting != nil {
		moving -= b.granting.urls
	}
	return seconds(max(b.load.Backlog.Seconds()+float64(moving)/b.load.Rate, 0))
}

func (b *timeBalance) isHungry() bool { return b.load.Rate > 0 && b.backlog() < hungerAt }

// spare returns the backlog that other nodes may share.
func (b *timeBalance) spare() time.Duration {
	if !b.known || !b.load.Busy || b.place.leaving || !b.place.isFresh() {
		return 0
	}
	return b.backlog()
}

// search queries the backlogs of some nodes.
func (b *timeBalance) search() {
	if b.searching || b.core.now.Before(b.nextAt) || !b.place.isFresh() {
		return
	}
	b.searching = true
	if b.rounds++; b.rounds%farSearch == 0 {
		b.lookups.find(b.randomID(), false, b.query)
		return
	}
	b.query(b.candidates())
}

// random returns a number that differs for each node and call.
func (b *timeBalance) random() uint64 { return splitmix.Next(b.core.number()) }

func (b *timeBalance) randomID() (id xor.ID) {
	for i := range id {
		if i%8 == 0 || len(id) < 8 {
			x := b.random()
			for k := i; k < min(i+8, len(id)); k++ {
				id[k] = byte(x >> (8 * (k - i)))
			}
		}
	}
	return id.Truncate(b.place.width)
}

// candidates returns some known nodes: the next ones from near to far, and random ones.
func (b *timeBalance) candidates() (some []strategy.Node) {
	var all []strategy.Node
	b.place.eachLowBucket(b.place.width, func(_ int, nodes []strategy.Node) { all = append(all, nodes...) })
	add := func(i int) {
		if n := all[i%len(all)]; !slices.Contains(some, n) {
			some = append(some, n)
		}
	}
	if len(all) == 0 {
		return nil
	}
	for range min(askedNear, len(all)) {
		add(b.cursor % len(all))
		b.cursor++
	}
	for range askedRandom {
		add(int(b.random() % uint64(len(all))))
	}
	return some
}

// query queries the backlogs of nodes, and requests hosts from the one with the longest.
func (b *timeBalance) query(nodes []strategy.Node) {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n strategy.Node) bool { return n == b.core.self })
	var best strategy.Node
	longest, left := time.Duration(0), len(nodes)
	if left == 0 {
		b.searched(false)
		return
	}
	for _, n := range nodes {
		b.mail.post(n, item{kind: itemBacklog}, func(_ strategy.Node, r *reply) {
			if r != nil && r.code == replyYes {
				if t := milliseconds(r.number); t > longest {
					best, longest = n, t
				}
			}
			if left--; left > 0 {
				return
			}
			if !b.isHungry() || longest < b.backlog()+minGain {
				b.searched(false)
				return
			}
			b.requestFrom(best)
		})
	}
}

// searched ends a search.
func (b *timeBalance) searched(found bool) {
	b.searching = false
	if found {
		b.pause, b.rounds = firstPause, 0
		b.nextAt = b.core.now.Add(firstPause)
		return
	}
	b.nextAt = b.core.now.Add(b.pause)
	b.pause = min(2*b.pause, longestPause)
}

// requestFrom requests hosts from a node. It may lend twice the maxGrant: see Spare.Select.
func (b *timeBalance) requestFrom(n strategy.Node) {
	b.requested[n] = allowance{int64(min(2*maxGrant.Seconds()*b.load.Rate, maxURLs)) + 1, b.core.now.Add(requestTime)}
	it := item{kind: itemRequest, number: packNeed(need{b.load.Rate, b.backlog()})}
	b.mail.post(n, it, func(_ strategy.Node, r *reply) {
		b.searched(r != nil && r.code == replyYes && r.number > 0)
	})
}

// offered processes an itemOffer: another node has work.
func (b *timeBalance) offered(from strategy.Node, _ item) reply {
	if b.known && !b.searching && !b.place.leaving && b.isHungry() {
		b.searching = true
		b.requestFrom(from)
	}
	return reply{code: replyYes}
}

// admit accepts a host of a node that has got a request, within its allowance.
func (b *timeBalance) admit(from strategy.Node, host string, urls int64) bool {
	a := b.requested[from]
	urls = max(urls, 1)
	if !b.core.now.Before(a.until) || urls > a.urls || len(b.arriving) >= maxArriving {
		return false
	}
	a.urls -= urls
	b.requested[from] = a
	b.arriving[host] = transit{urls, b.core.now.Add(transitTime)}
	return true
}

// Limits of what other nodes send.
const (
	maxArriving = 1 << 12
	maxURLs     = 1 << 30
)

// answerBacklog replies to an itemBacklog, and remembers the other node as hungry.
func (b *timeBalance) answerBacklog(from strategy.Node, _ item) reply {
	b.hungry = slices.DeleteFunc(b.hungry, func(h hungryNode) bool { return h.node == from })
	if len(b.hungry) >= maxHungry {
		b.hungry = slices.Delete(b.hungry, 0, 1)
	}
	b.hungry = append(b.hungry, hungryNode{from, b.core.now.Add(hungerTime)})
	t := b.spare()
	if t <= minGain {
		return reply{code: replyNo}
	}
	return reply{code: replyYes, number: t.Milliseconds()}
}

// offerWork offers hosts to nodes that were hungry lately, the latest first.
func (b *timeBalance) offerWork() {
	if b.spare() < hungerAt+minGain {
		return
	}
	for range min(offersAtOnce, len(b.hungry)) {
		last := b.hungry[len(b.hungry)-1]
		b.hungry = b.hungry[:len(b.hungry)-1]
		b.mail.post(last.node, item{kind: itemOffer}, func(strategy.Node, *reply) {})
	}
}

// request processes an itemRequest: it lends as many hosts as have both nodes finish at the same time.
func (b *timeBalance) request(from strategy.Node, it item, answer func(reply)) {
	b.hungry = slices.DeleteFunc(b.hungry, func(h hungryNode) bool { return h.node == from })
	urls := b.shareOf(unpackNeed(it.number))
	if urls < 1 || b.granting != nil {
		answer(reply{code: replyNo})
		return
	}
	b.granting = &grant{from, urls, b.core.now.Add(grantTime), answer}
	b.core.do(Spare{To: from, URLs: urls, AtLeastOne: true})
}

// shareOf returns how many of this node's URLs another node should fetch.
func (b *timeBalance) shareOf(n need) int64 {
	mine := b.spare()
	n.rate = cmp.Or(n.rate, b.load.Rate)
	if mine < n.backlog+minGain || b.load.Rate <= 0 {
		return 0
	}
	urls := (mine - n.backlog).Seconds() * b.load.Rate * n.rate / (b.load.Rate + n.rate)
	return int64(min(urls, maxGrant.Seconds()*n.rate, maxURLs))
}

// spared lends the hosts that the engine can spare.
func (b *timeBalance) spared(e Spared) {
	g := b.granting
	if g == nil || g.to != e.To {
		return
	}
	b.granting = nil
	given := int64(0)
	for i, host := range e.Hosts {
		urls := int64(1)
		if i < len(e.Pending) {
			urls = e.Pending[i]
		}
		if b.lending.lend(host, e.To, urls) {
			b.leaving[host] = transit{urls, b.core.now.Add(transitTime)}
			given += urls
		}
	}
	if given == 0 {
		g.answer(reply{code: replyNo})
		return
	}
	g.answer(reply{code: replyYes, number: given})
}

// refuse refuses the present request: the engine has not answered.
func (b *timeBalance) refuse() {
	g := b.granting
	b.granting = nil
	g.answer(reply{code: replyNo})
}

// A need describes the load of a hungry node.
type need struct {
	rate    float64 // URLs per second; 0: unknown
	backlog time.Duration
}

const needBits = 31

func packNeed(n need) int64 {
	limit := func(x float64) int64 { return int64(min(max(x, 0), 1<<needBits-1)) }
	return limit(n.rate*1000)<<needBits | limit(float64(n.backlog.Milliseconds()))
}

func unpackNeed(n int64) need {
	if n < 0 {
		return need{}
	}
	return need{float64(n>>needBits) / 1000, milliseconds(n & (1<<needBits - 1))}
}

// milliseconds returns a duration from another node, which may be wrong.
func milliseconds(n int64) time.Duration {
	return time.Duration(min(max(n, 0), 1<<needBits-1)) * time.Millisecond
}

func seconds(s float64) time.Duration { return time.Duration(min(s, 1e9) * float64(time.Second)) }

// Select returns the answer to a Spare. hosts are this node's hosts, those with most pending URLs first.
func (a Spare) Select(hosts []string, pending []int64) Spared {
	s := Spared{To: a.To}
	add := func(i int) { s.Hosts, s.Pending = append(s.Hosts, hosts[i]), append(s.Pending, pending[i]) }
	if !a.AtLeastOne {
		for i, left := 0, a.URLs; i < len(hosts); i++ {
			if pending[i] <= left {
				left -= pending[i]
				add(i)
			}
		}
		return s
	}
	all, met, given := int64(0), int64(0), int64(0)
	for _, n := range pending {
		all += n
	}
	part := min(float64(a.URLs)/float64(max(all, 1)), 1)
	for i, n := range pending {
		if met += n; float64(given)+float64(n)/2 <= part*float64(met) {
			given += n
			add(i)
		}
	}
	if last := len(hosts) - 1; given == 0 && last >= 0 && pending[last] <= 2*a.URLs {
		add(last)
	}
	return s
}

// A QueuedHost is a host with pending URLs.
type QueuedHost struct {
	Pending int64
	Each    time.Duration // least time between two requests
}

// BacklogOf returns the time for which pending URLs use a node's whole rate, in URLs per second. hosts are those with
// long queues. URLs that the delay of their host leaves for later do not count: another node could not fetch them
// earlier.
func BacklogOf(pending int64, hosts []QueuedHost, rate float64) time.Duration {
	if rate <= 0 || pending <= 0 {
		return 0
	}
	t := float64(pending) / rate
	for range 50 {
		urls := float64(pending)
		for _, h := range hosts {
			if h.Each > 0 {
				urls -= max(0, float64(h.Pending)-1-t/h.Each.Seconds())
			}
		}
		was := t
		if t = max(urls, 0) / rate; was-t < was/1000 {
			break
		}
	}
	return seconds(t)
}
