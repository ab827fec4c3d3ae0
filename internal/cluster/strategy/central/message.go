package central

import (
	"errors"
	"math"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/leader"
)

// Requests of nodes to the leader, and its answers, are items that follow the header of package leader. Messages may be
// lost, duplicated or delayed. So nodes repeat requests until they have an answer, and the leader repeats its answers.

// Requests of nodes.
const (
	itemRequest = 'w' // requests the owner of a host; number: links waiting for it
	itemClaim   = 'c' // this node reaches the host; number: connection time in µs
	itemFail    = 'f' // this node does not reach the host; number: time of the attempt in µs
	itemHeld    = 'h' // this node holds the host
	itemSync    = 's' // requests the hosts that this node owns; number: cursor
	itemOffer   = 'x' // this node has paused the host, and offers it to the item's node; number: pending URLs
	itemLoad    = 'd' // load of this node, in text; without an answer
)

// Answers and requests of the leader.
const (
	itemOwner      = 'o' // the item's node owns the host, or it is promised to that node
	itemProbe      = 'p' // requests a probe; number: round
	itemWait       = 't' // no decision yet; number: ms until the request should be repeated
	itemOwned      = 'y' // the receiver owns the host and reaches it
	itemOwnedProbe = 'v' // the receiver owns the host and must probe it; number: round
	itemParked     = 'r' // the receiver owns the host, which no node reaches; number: ms until the next attempt
	itemOfferHosts = 'g' // requests offers to the item's node; number: hosts
	// requests offers to the item's node; number: total of pending URLs
	itemOfferURLs = 'u'
	itemStatus    = 'k' // status data of the policy, in text
	itemList      = 'l' // hosts that the receiver owns: names and rounds in text; number: next cursor, 0 at the end
)

// An item is one request or answer, usually about one host.
type item struct {
	kind   byte
	host   string
	number uint64
	node   strategy.Node
	text   string // of a claim or failure: the host's network, if known
}

func (it *item) append(w *varint.Writer) {
	w.Byte(it.kind)
	w.String(it.host)
	w.Uint(it.number)
	w.String(string(it.node))
	w.String(it.text)
}

var errMessage = errors.New("strategy message: damaged")

// aboutHost reports whether an item is a request or an answer about the owner of one host: what the DSpider paper calls
// a Host request.
func (it *item) aboutHost() bool {
	switch it.kind {
	case itemSync, itemLoad, itemOfferHosts, itemOfferURLs, itemStatus, itemList:
		return false
	}
	return true
}

func (s *Strategy) countHostRequests(items []item) {
	for i := range items {
		if items[i].aboutHost() {
			s.hostRequests++
		}
	}
}

func parseItems(b []byte) (items []item, err error) {
	r := varint.Reader{Rest: b}
	for len(r.Rest) > 0 {
		items = append(items, item{kind: r.Byte(), host: r.String(), number: r.Uint(), node: strategy.Node(r.String()),
			text: r.String()})
	}
	if r.Bad {
		return nil, errMessage
	}
	return items, nil
}

// A packet is a message to one node that collects items.
type packet struct {
	to   strategy.Node
	data varint.Writer
}

const maxPacket = 128 << 10

// An output collects the actions of a step, and the items to send at its end.
type output struct {
	actions  []strategy.Action
	packets  []packet
	packetAt map[packetKey]int
	begin    func(leader.Kind) varint.Writer // starts a message

	hostAnswers int64 // answers about hosts, since the start
}

func (o *output) do(a strategy.Action) { o.actions = append(o.actions, a) }

// post adds an item to the messages that the step sends to a node at its end.
func (o *output) post(to strategy.Node, kind leader.Kind, it item) {
	if to == "" {
		return
	}
	key := packetKey{to, kind}
	i, there := o.packetAt[key]
	if !there || len(o.packets[i].data) > maxPacket {
		i = len(o.packets)
		o.packetAt[key] = i
		o.packets = append(o.packets, packet{to: to, data: o.begin(kind)})
	}
	it.append(&o.packets[i].data)
	if kind == leader.Answer && it.aboutHost() {
		o.hostAnswers++
	}
}

type packetKey struct {
	to   strategy.Node
	kind leader.Kind
}

// deliver sends the collected items. Those for this node itself are applied at once; deliver reports whether there were
// any.
func (s *Strategy) deliver() (self bool) {
	packets := s.packets
	s.packets = nil
	clear(s.packetAt)
	for _, m := range packets {
		if m.to == s.cfg.Self {
			self = true
			s.receive(strategy.Message{From: m.to, Data: m.data})
		} else {
			s.do(strategy.Send{To: m.to, Data: m.data})
		}
	}
	return self
}

func appendLoad(w *varint.Writer, e *strategy.Load) {
	for _, n := range []int64{int64(e.Hosts), e.Pending, int64(e.Fetching), e.Pages, e.Enqueued, e.Bytes, int64(e.CPU)} {
		w.Uint(uint64(max(0, n)))
	}
	m := &e.Machine
	for _, f := range []float64{e.Rate, e.Busy, m.Cores, m.GHz, m.MemoryGB, m.NetworkMbps, m.DiskMbps} {
		w.Uint(math.Float64bits(f))
	}
	w.Bool(e.Paused)
}

func parseLoad(n strategy.Node, s string) (strategy.Load, bool) {
	r := varint.Reader{Rest: []byte(s)}
	most := func(n uint64) int64 { return int64(min(r.Uint(), n)) }
	e := strategy.Load{Node: n, Hosts: int(most(1 << 40)), Pending: most(1 << 40), Fetching: int(most(1 << 40)),
		Pages: most(1 << 60), Enqueued: most(1 << 60), Bytes: most(1 << 60), CPU: time.Duration(most(1 << 60))}
	m := &e.Machine
	for _, f := range []*float64{&e.Rate, &e.Busy, &m.Cores, &m.GHz, &m.MemoryGB, &m.NetworkMbps, &m.DiskMbps} {
		if *f = math.Float64frombits(r.Uint()); !(*f >= 0 && *f <= maxFigure) { // rejects NaN, too
			return strategy.Load{}, false
		}
	}
	e.Paused = r.Uint() > 0
	return e, r.Complete()
}

// maxFigure bounds the figures of a Load.
const maxFigure = 1e12
