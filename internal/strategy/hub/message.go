package hub

import (
	"errors"

	"kumo/internal/strategy"
	"kumo/internal/strategy/leader"
	"kumo/internal/varint"
)

// Questions of nodes to the control unit, and its answers, are items behind what package leader begins them with. All of
// them may be lost, come twice or late: nodes ask until they have an answer, and the control unit answers the same
// again.

// What nodes ask.
const (
	itemWant  = 'w' // whose is the host?
	itemClaim = 'c' // this node reaches it; number: in so many microseconds
	itemFail  = 'f' // it does not; number: in so many microseconds
	itemHold  = 'h' // this node holds it
	itemSync  = 's' // which hosts are this node's? number: the cursor
	itemOffer = 'x' // this node has stopped the host, and would hand it over to the item's node; number: URLs that wait
	// at so many hosts of this node something waits: number; text: for how many milliseconds its queue lasts. It is not
	// answered
	itemLoad = 'd'
)

// What the control unit answers.
const (
	itemOwner = 'o' // it is the node's; or nobody's yet and promised to it
	itemProbe = 'p' // can you reach it? number: round
	itemWait  = 't' // it is being decided; number: ask again after so many milliseconds
	itemYours = 'y' // it is yours, and you reach it
	itemProve = 'v' // it is yours; see whether you reach it. number: round
	itemRest  = 'r' // it is yours, and nobody reaches it: try again after so many milliseconds
	itemGive  = 'g' // offer so many hosts to the item's node: number
	itemList  = 'l' // these are yours; text: their names and rounds; number: the next cursor, 0 at the end
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

var errMessage = errors.New("a message that is none of a hub's")

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
type mail struct {
	to   strategy.Node
	data varint.Writer
}

const maxMail = 128 << 10

// post adds an item to what a node is sent at the end of the step.
func (h *Hub) post(to strategy.Node, kind leader.Kind, it item) {
	if to == "" {
		return
	}
	key := mailKey{to, kind}
	i, there := h.mailAt[key]
	if !there || len(h.mails[i].data) > maxMail {
		i = len(h.mails)
		h.mailAt[key] = i
		h.mails = append(h.mails, mail{to: to, data: h.elector.Begin(kind)})
	}
	it.append(&h.mails[i].data)
}

type mailKey struct {
	to   strategy.Node
	kind leader.Kind
}

// deliver sends what was posted. What is for this node itself is taken in at once, and reports whether there was such.
func (h *Hub) deliver() (self bool) {
	mails := h.mails
	h.mails = nil
	clear(h.mailAt)
	for _, m := range mails {
		if m.to == h.cfg.Self {
			self = true
			h.message(strategy.Message{From: m.to, Data: m.data})
		} else {
			h.do(strategy.Send{To: m.to, Data: m.data})
		}
	}
	return self
}
