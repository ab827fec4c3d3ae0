package mesh

import (
	"slices"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// The kinds of items.
const (
	// store these URLs of a host, whose target is, or was, node. number: itemGiven, or 0. Reply: the previous state of
	// each; later: later visits; node: the host's target, if the sender may have become the first backup
	itemStore    = 's'
	itemDispatch = 'd' // fetch these URLs; number: the host's timing; node: a node that may still be fetching the host
	itemMarks    = 'm' // these URLs were fetched
	itemMoved    = 'v' // node fetches the host from now on; number: its timing
	itemCheck    = 'c' // query whether the receiver has this host
	// stop fetching this host, which is the sender's now. Reply: number, its timing; node: with replyYes the next
	// target, if not the sender; with replyLater a node for which the receiver waits; with replyNo a node that may be
	// fetching it
	itemYield   = 'y'
	itemLevel   = 'l' // query of the load. Reply: number, the level
	itemReserve = 'r' // reserve room for number blocks. Reply: number, the reserved blocks
	// query of the backlog. The receiver remembers the sender as hungry. Reply: number, milliseconds
	itemBacklog = 'w'
	itemRequest = 'p' // request of hosts; number: the need. Reply: number of URLs whose hosts the receiver lends
	itemOffer   = 'e' // the receiver may send an itemRequest
	// fetch this host for the sender, or for its target, node, if that is not the sender; number: its pending URLs
	itemGive   = 'g'
	itemPass   = 'f' // node fetches this host from now on, which the receiver had lent to the sender
	itemLender = 'z' // query of the receiver's process, which has lent hosts to the sender. Reply: number
	itemRevoke = 'x' // stop fetching this host for the sender, which is no longer its target
	itemReturn = 'b' // no URLs of this host are left; it is the receiver's again
	itemGuest  = 'u' // query whether the receiver fetches this host for the sender
	itemRecall = 'k' // release this host, as if it were another node's: some of its pending URLs are done
	itemOpen   = 'o' // query of the number of open URLs of this host in the receiver's history. Reply: number

	// the cookies of this host, which the receiver fetches next. Reply: replyMoved, if it fetches the host already
	itemCookies = 'j'
)

// itemGiven is the number of an itemStore by which a node transfers its whole history of a host to a node that has
// joined its part of the network.
const itemGiven = 1

// An item is a request about one host.
type item struct {
	kind   byte
	host   string
	links  []Link
	node   strategy.Node
	number int64

	cookies []byte // of an itemCookies, in the engine's encoding; at most MaxCookies bytes
}

// The codes of replies.
const (
	replyYes   = 'y'
	replyNo    = 'n' // the receiver is not responsible; node: a node that may be
	replyLater = 'l' // try again
	replyMoved = 'v' // node has the host, although another node is closer
	replyIdle  = 'i' // to itemCheck: the receiver has no pending URLs of the host
)

type reply struct {
	code   byte
	node   strategy.Node
	states []State // of the item's links, if any
	number int64
	later  []Link // to itemStore: later visits to links that are done, as the sender has them
}

// givesWork reports whether an item may give a node something to do for the crawl. Other items are upkeep, which idle
// nodes exchange, too: in a large network some are always in transit.
func (it *item) givesWork() bool {
	switch it.kind {
	case itemStore:
		return anyOpen(it.links)
	case itemOpen, itemLevel, itemBacklog, itemRequest, itemOffer, itemGuest, itemReturn, itemLender,
		itemCookies:
		return false
	}
	return true
}

// anyOpen reports whether one of some links is open.
func anyOpen(links []Link) bool {
	return slices.ContainsFunc(links, func(k Link) bool { return k.State == Dispatched })
}

// mail exchanges items with other nodes reliably.
//
// An item for another node waits in that node's lane. It is sent in one packet with the other items of the lane, and
// the packet is repeated until it is acknowledged: messageItems, answered by messageReplies. The replies are sent when
// all items of the packet are processed durably. So an item is processed at least once; handlers are idempotent. If the
// other node does not answer for long, or is gone, its items fail: done is called without a reply.
//
// Invariants: done is called once for each item. At most window packets of a lane are unacknowledged. Memory is bounded
// whatever other nodes send (maxInbound, maxInboundOf, maxArrived).
type mail struct {
	core     *core
	handlers map[byte]itemHandler // by the item's kind

	lanes  map[strategy.Node]*lane
	ready  []*lane // lanes that may have something to send
	posted int     // items in transit that may give another node something to do

	inbound   map[packetKey]bool // packets of other nodes that are being processed
	ofNode    map[strategy.Node]int
	arrivals  *bounded.Recent[packetKey, time.Time] // time of the first arrival of each of the last packets
	executing int                                   // inbound packets that may have given this node something to do
}

// An itemHandler processes an item, and calls answer once, at once or later.
type itemHandler func(from strategy.Node, it item, answer func(reply))

// atOnce returns the handler of items that f answers at once.
func atOnce(f func(from strategy.Node, it item) reply) itemHandler {
	return func(from strategy.Node, it item, answer func(reply)) { answer(f(from, it)) }
}

// A delivery is an item in transit.
type delivery struct {
	item
	isWork bool
	// done is called with the reply; nil: the node is gone, or does not answer
	done func(to strategy.Node, r *reply)
}

// A lane has the items in transit to one node.
type lane struct {
	to      strategy.Node
	queue   []*delivery
	packets []*packet
	ready   bool // is in mail.ready
}

type packet struct {
	id         uint64
	deliveries []*delivery
	data       []byte
	tries      int
	again      time.Time
	over       bool // acknowledged, or failed
}

// A packetKey identifies a packet of another node.
type packetKey struct {
	from strategy.Node
	id   uint64
}

const (
	maxPacket  = 64 << 10 // bytes of a message, without its last item
	maxItem    = 500      // links of an item
	window     = 2        // unacknowledged packets of a lane
	maxTries   = 3
	maxInbound = 1024 // packets of other nodes that are being processed; the senders repeat the rest
	// the same for one node: a node that respects window has two, and some from before a restart
	maxInboundOf = 8 * window
	maxArrived   = 1 << 15 // packets whose first arrival is remembered
	// this long after a packet's first arrival its sender has given it up: see timedOut
	staleAfter = 4 * retry << (maxTries - 1)
)

// retry is the first timeout of a packet. It doubles with each attempt.
const retry = time.Second

func newMail(c *core) *mail {
	return &mail{core: c, lanes: map[strategy.Node]*lane{}, inbound: map[packetKey]bool{},
		ofNode: map[strategy.Node]int{}, arrivals: bounded.NewRecent[packetKey, time.Time](maxArrived)}
}

func (m *mail) post(to strategy.Node, it item, done func(to strategy.Node, r *reply)) {
	l := m.lanes[to]
	if l == nil {
		l = &lane{to: to}
		m.lanes[to] = l
	}
	d := &delivery{it, it.givesWork(), done}
	if d.isWork {
		m.posted++
	}
	l.queue = append(l.queue, d)
	m.markReady(l)
}

func (m *mail) finish(d *delivery, to strategy.Node, r *reply) {
	if d.isWork {
		m.posted--
	}
	d.done(to, r)
}

// markReady has flush process a lane.
func (m *mail) markReady(l *lane) {
	if !l.ready {
		l.ready = true
		m.ready = append(m.ready, l)
	}
}

// flush sends posted items as far as windows allow, and processes those for this node itself.
func (m *mail) flush() {
	for m.flushOnce() {
	}
}

// flushOnce does so for the items posted until now. It reports whether some were for this node itself, which may have
// posted more.
func (m *mail) flushOnce() (more bool) {
	ready := m.ready
	m.ready = nil
	for _, l := range ready {
		l.ready = false
		if l.to == m.core.self {
			queue := l.queue
			l.queue = nil
			for _, d := range queue {
				if d.isWork { // the handler keeps this node from being idle
					m.posted--
				}
				m.handle(l.to, d.item, func(r reply) { d.done(l.to, &r) })
			}
			more = true
			continue
		}
		for len(l.packets) < window && len(l.queue) > 0 {
			m.pack(l)
		}
	}
	return more
}

// pack sends the first items of a lane in a packet.
func (m *mail) pack(l *lane) {
	p := &packet{id: m.core.number()}
	w := varint.Writer{messageItems}
	w.Uint(p.id)
	n := 0
	for n < len(l.queue) && (len(w) < maxPacket || n == 0) {
		l.queue[n].item.append(&w)
		n++
	}
	p.deliveries, p.data = l.queue[:n:n], w
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	l.packets = append(l.packets, p)
	m.send(l.to, p)
}

func (m *mail) send(to strategy.Node, p *packet) {
	p.again = m.core.now.Add(retry << p.tries)
	p.tries++
	m.core.at(p.again, &p.over, func() { m.timedOut(to, p) })
	m.core.do(Send{To: to, Data: p.data})
}

// timedOut repeats a packet that was not acknowledged in time, or fails all items for the node.
func (m *mail) timedOut(to strategy.Node, p *packet) {
	l := m.lanes[to]
	switch {
	case l == nil || p.again.After(m.core.now) || !slices.Contains(l.packets, p):
	case p.tries >= maxTries:
		m.core.do(Suspect{Node: to})
		m.fail(to)
	default:
		m.send(to, p)
	}
}

// fail fails all items in transit to a node.
func (m *mail) fail(to strategy.Node) {
	l := m.lanes[to]
	if l == nil || to == m.core.self {
		return
	}
	delete(m.lanes, to)
	for _, p := range l.packets {
		p.over = true
		for _, d := range p.deliveries {
			m.finish(d, to, nil)
		}
	}
	for _, d := range l.queue {
		m.finish(d, to, nil)
	}
}

// acknowledged processes the replies to a packet.
func (m *mail) acknowledged(from strategy.Node, r *varint.Reader) error {
	id := r.Uint()
	var replies []reply
	for len(r.Rest) > 0 && !r.Bad && len(replies) < maxItems {
		replies = append(replies, readReply(r))
	}
	if !r.Complete() {
		return errMessage
	}
	l := m.lanes[from]
	if l == nil {
		return nil
	}
	for i, p := range l.packets {
		if p.id != id || len(p.deliveries) != len(replies) {
			continue
		}
		p.over = true
		l.packets = append(l.packets[:i:i], l.packets[i+1:]...)
		if len(l.queue) > 0 {
			m.markReady(l)
		} else if len(l.packets) == 0 {
			delete(m.lanes, from)
		}
		for j, d := range p.deliveries {
			m.finish(d, from, &replies[j])
		}
		return nil
	}
	return nil
}

// received processes the items of another node's packet, and sends the replies when all are done.
//
// A repetition long after the first arrival is dropped. Processing a packet twice within a short time changes nothing.
// But after a long time another node may have fetched a URL that the packet dispatches, and this node would fetch it
// again.
func (m *mail) received(from strategy.Node, r *varint.Reader) error {
	id := r.Uint()
	var items []item
	for len(r.Rest) > 0 && !r.Bad && len(items) < maxItems {
		items = append(items, readItem(r))
	}
	if !r.Complete() || len(items) == 0 {
		return errMessage
	}
	key := packetKey{from, id}
	if m.inbound[key] || len(m.inbound) >= maxInbound || m.ofNode[from] >= maxInboundOf {
		return nil
	}
	if first, again := m.arrivals.Get(key); !again {
		m.arrivals.Put(key, m.core.now)
	} else if m.core.now.Sub(first) > staleAfter {
		return nil
	}
	works := slices.ContainsFunc(items, func(it item) bool { return it.givesWork() })
	m.begin(key, works)
	replies, left := make([]reply, len(items)), len(items)
	for i, it := range items {
		m.handle(from, it, func(r reply) {
			replies[i] = r
			if left--; left == 0 {
				m.end(key, works)
				m.core.do(Send{To: from, Data: encodeReplies(id, replies)})
			}
		})
	}
	return nil
}

// begin counts a packet as being processed.
func (m *mail) begin(key packetKey, works bool) {
	m.ofNode[key.from]++
	m.inbound[key] = true
	if works {
		m.core.activity++
		m.executing++
	}
}

func (m *mail) end(key packetKey, works bool) {
	delete(m.inbound, key)
	if m.ofNode[key.from]--; m.ofNode[key.from] == 0 {
		delete(m.ofNode, key.from)
	}
	if works {
		m.executing--
	}
}

// handle processes an item. Items of another balancePolicy have no handler, nor has itemCookies without ShareCookies.
func (m *mail) handle(from strategy.Node, it item, answer func(reply)) {
	if f := m.handlers[it.kind]; f != nil {
		f(from, it, answer)
		return
	}
	answer(reply{code: replyNo})
}

// busy reports whether items are in transit, in either direction.
func (m *mail) busy() bool {
	for _, l := range m.lanes {
		if len(l.queue)+len(l.packets) > 0 {
			return true
		}
	}
	return len(m.inbound) > 0
}

// answerTime is how long an answer may wait for a slow event, such as a response of a web server. Some time later the
// other node would treat this one as gone.
const answerTime = retry / 2

// A deferredReply is a reply that is replaced by another one, such as replyLater, if it is not sent in time.
type deferredReply struct {
	answer func(reply)
	over   bool
}

// deferReply returns a reply that is replaced by late's after answerTime.
func deferReply(c *core, answer func(reply), late func() reply) *deferredReply {
	p := &deferredReply{answer: answer}
	c.at(c.now.Add(answerTime), &p.over, func() { p.send(late()) })
	return p
}

func later() reply { return reply{code: replyLater} }

// send sends a reply, unless one was sent.
func (p *deferredReply) send(r reply) {
	if !p.over {
		p.over = true
		p.answer(r)
	}
}
