package mesh

import (
	"errors"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// The first byte of a message.
const (
	messageItems   = 'i' // a packet: its number, its items
	messageReplies = 'r' // its acknowledgement: the packet's number, a reply for each item
	messageGather  = 'g' // a query: its number, the number of buckets, milliseconds left, its kind, a division
	messageTally   = 't' // its answer: the number, whether it is final, and if so, a Tally
	messageGrant   = 'b' // grants pages to a node that answered: the query's number, the number of pages
	messageResult  = 'e' // a node, the version of its report on the crawl, the report
	messageWhole   = 'f' // the report of all nodes, to a node that answered: query number, number of nodes, report
	messageRecord  = 'c' // the crawl's record: the number of buckets, its version, the version's author, its data
	// a summary of the sender's data: whether the receiver should answer with its own, the version of the record, the
	// version's author, the number of chunks, the sum of their ids
	messageVersion = 'v'
	messageChunk   = 'k' // a chunk: the number of buckets, its data
	messageHave    = 'h' // whether the receiver should answer with its own, ids of chunks that the sender has
	messageWant    = 'w' // ids of chunks that the sender requests
	messageCounts  = 'n' // nodes, each with its number of fetched pages
	// the crawl's terms: whether the receiver should answer with its own, and whether the sender has some; if so, the
	// strategy, the size of a block, the interval between updates, the terms' age, and the time until the next update,
	// in milliseconds
	messageTerms = 'p'
	// the record files with lists of pages at risk: a number, the node of the files, if not the sender, for how many
	// milliseconds that node has been missing, the files' names, the index of one, whether the receiver's copy of its
	// list must be rewritten, the offset in the list of the piece that follows, and the piece
	messageRisks = 'l'
	// the answer: the number, the node of the files, whether the sender needs no more of them, names, each with how
	// many bytes of its list the sender has
	messageHaveRisks = 'm'
)

// Limits of messages from other nodes.
const (
	maxItems = 1 << 14 // per message
	maxName  = 1 << 10 // bytes of a host or a node
	maxBytes = 1 << 16 // of a link
)

var errMessage = errors.New("invalid message of a mesh")

// laterVisit is set in a link's state if the number of its visit follows, and in a reply's code if later visits follow.
const laterVisit = 0x80

func (it *item) append(w *varint.Writer) {
	w.Byte(it.kind)
	w.String(it.host)
	w.String(string(it.node))
	w.Int(it.number)
	appendLinks(w, it.links)
	if it.kind == itemCookies {
		w.Bytes(it.cookies)
	}
}

func appendLinks(w *varint.Writer, links []Link) {
	w.Uint(uint64(len(links)))
	for i := range links {
		k := &links[i]
		*w = append(*w, k.Hash[:]...)
		if k.Visit > 0 {
			w.Byte(byte(k.State) | laterVisit)
			w.Uint(k.Visit)
		} else {
			w.Byte(byte(k.State))
		}
		w.Bytes(k.Item)
	}
}

// readLinks reads links. It sets r.Bad if they are invalid.
func readLinks(r *varint.Reader) []Link {
	n := r.Uint()
	// a link takes at least a hash, a state and a length
	if n > uint64(len(r.Rest)/(len(Hash{})+2)) {
		r.Bad = true
		return nil
	}
	if n == 0 {
		return nil
	}
	links := make([]Link, n)
	for i := range links {
		k := &links[i]
		copy(k.Hash[:], r.Take(uint64(len(k.Hash))))
		state := r.Byte()
		if k.State = State(state &^ laterVisit); state&laterVisit != 0 {
			k.Visit = r.Uint()
			r.Bad = r.Bad || k.Visit == 0
		}
		k.Item = r.Bytes()
		known := k.State == Dispatched || k.State == Done || k.State == Scheduled && k.Visit > 0
		if !known || len(k.Item) > maxBytes {
			r.Bad = true
			return nil
		}
	}
	return links
}

func readItem(r *varint.Reader) item {
	it := item{kind: r.Byte(), host: r.String(), node: strategy.Node(r.String()), number: r.Int()}
	it.links = readLinks(r)
	if len(it.host) > maxName || len(it.node) > maxName {
		r.Bad = true
		return item{}
	}
	switch it.kind {
	case itemStore, itemDispatch, itemMarks, itemMoved, itemCheck, itemYield, itemLevel, itemReserve, itemGive,
		itemReturn, itemGuest, itemOpen, itemRecall, itemBacklog, itemRequest, itemOffer, itemPass,
		itemRevoke, itemLender, itemCookies:
	default:
		r.Bad = true
	}
	if it.kind == itemCookies {
		if it.cookies = r.Bytes(); len(it.cookies) > MaxCookies {
			r.Bad = true
			return item{}
		}
	}
	return it
}

func encodeReplies(id uint64, replies []reply) []byte {
	w := varint.Writer{messageReplies}
	w.Uint(id)
	for _, r := range replies {
		if len(r.later) > 0 {
			r.code |= laterVisit
		}
		w.Byte(r.code)
		w.String(string(r.node))
		w.Int(r.number)
		w.Uint(uint64(len(r.states)))
		for _, s := range r.states {
			w.Byte(byte(s))
		}
		if len(r.later) > 0 {
			appendLinks(&w, r.later)
		}
	}
	return w
}

// complainEvery is the minimum interval between log messages about invalid messages of one node, which can send
// thousands per second. maxComplained bounds the nodes for which the last time is stored.
const (
	complainEvery = time.Minute
	maxComplained = 1 << 8
)

// A messageHandler handles a message of another node, without its first byte.
type messageHandler func(from strategy.Node, r *varint.Reader) error

// An inbox passes messages of other nodes to the parts, by their first byte.
type inbox struct {
	core       *core
	handlers   map[byte]messageHandler
	complaints *bounded.Throttle[strategy.Node]
}

func newInbox(c *core) *inbox {
	return &inbox{core: c, complaints: bounded.NewThrottle[strategy.Node](complainEvery, maxComplained)}
}

// receive handles a message, and logs if it is invalid.
func (b *inbox) receive(from strategy.Node, data []byte) {
	if err := b.handle(from, data); err != nil && b.complaints.Allow(from, b.core.now) {
		b.core.log.Warn("invalid message from another node", "from", from, "err", err)
	}
}

func (b *inbox) handle(from strategy.Node, data []byte) error {
	r := varint.Reader{Rest: data}
	if f := b.handlers[r.Byte()]; f != nil {
		return f(from, &r)
	}
	return errMessage
}

func readReply(r *varint.Reader) reply {
	a := reply{code: r.Byte(), node: strategy.Node(r.String()), number: r.Int()}
	n := r.Uint()
	if n > uint64(len(r.Rest)) || len(a.node) > maxName {
		r.Bad = true
		return reply{}
	}
	if n > 0 {
		a.states = make([]State, n)
	}
	for i := range a.states {
		if a.states[i] = State(r.Byte()); a.states[i] > withheld {
			r.Bad = true
		}
	}
	if a.code&laterVisit != 0 {
		a.code &^= laterVisit
		a.later = readLinks(r)
	}
	return a
}
