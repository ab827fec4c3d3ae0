package central

import (
	"errors"
	"math"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/leader"
)

// Questions of nodes to the leader, and its answers, are items behind what package leader begins them with. All of
// them may be lost, come twice or late: nodes ask until they have an answer, and the leader answers the same
// again.

// What nodes ask.
const (
	itemRequest = 'w' // whose is the host? number: links that wait for it
	itemClaim   = 'c' // this node reaches it; number: in so many microseconds
	itemFail    = 'f' // it does not; number: in so many microseconds
	itemHeld    = 'h' // this node holds it
	itemSync    = 's' // which hosts are this node's? number: the cursor
	itemOffer   = 'x' // this node has stopped the host, and would hand it over to the item's node; number: URLs that wait
	itemLoad    = 'd' // so much this node has to do: text. It is not answered
)

// What the leader answers.
const (
	itemOwner      = 'o' // it is the node's; or nobody's yet and promised to it
	itemProbe      = 'p' // can you reach it? number: round
	itemWait       = 't' // it is being decided; number: ask again after so many milliseconds
	itemOwned      = 'y' // it is yours, and you reach it
	itemOwnedProbe = 'v' // it is yours; see whether you reach it. number: round
	itemParked     = 'r' // it is yours, and nobody reaches it: try again after so many milliseconds
	itemOfferHosts = 'g' // offer so many hosts to the item's node: number
	// offer hosts to the item's node where so many URLs wait: number
	itemOfferURLs = 'u'
	itemStatus    = 'k' // what the policy tells this node: text
	itemList      = 'l' // these are yours; text: their names and rounds; number: the next cursor, 0 at the end
)

// An item is about one host, mostly.
type item struct {
	kind   byte
	host   string
	number uint64
	node   strategy.Node
	text   string // a claim's or failure's: the host's network, as far as the node has found it out
}

func (it *item) append(w *varint.Writer) {
	w.Byte(it.kind)
	w.String(it.host)
	w.Uint(it.number)
	w.String(string(it.node))
	w.String(it.text)
}

var errMessage = errors.New("a message that is none of a leader's or its nodes'")

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

// A mail is items for one node, which are sent together.
type packet struct {
	to   strategy.Node
	data varint.Writer
}

const maxPacket = 128 << 10

// An output holds what a step wants done, and the items that are sent at its end.
type output struct {
	actions  []strategy.Action
	packets  []packet
	packetAt map[packetKey]int
	begin    func(leader.Kind) varint.Writer // a message
}

func (o *output) do(a strategy.Action) { o.actions = append(o.actions, a) }

// post adds an item to what a node is sent at the end of the step.
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
}

type packetKey struct {
	to   strategy.Node
	kind leader.Kind
}

// deliver sends what was posted. What is for this node itself is taken in at once, and reports whether there was such.
func (s *Strategy) deliver() (self bool) {
	mails := s.packets
	s.packets = nil
	clear(s.packetAt)
	for _, m := range mails {
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
		if *f = math.Float64frombits(r.Uint()); !(*f >= 0 && *f <= maxFigure) { // so is NaN
			return strategy.Load{}, false
		}
	}
	e.Paused = r.Uint() > 0
	return e, r.Complete()
}

// maxFigure is more than any figure of a Load is.
const maxFigure = 1e12
