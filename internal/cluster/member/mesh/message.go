package mesh

import (
	"errors"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// The first byte of a message.
const (
	messageItems   = 'i' // a flight: its number, its items
	messageReplies = 'r' // the answer: the flight's number, a reply for each item
	messageGather  = 'g' // a question: its number, the buckets below which index, milliseconds left, whether for reports
	messageTally   = 't' // the answer: its number, whether it is the answer, and if so, a Tally
	messageRecord  = 'c' // the crawl's record: for which buckets, its version, whose that is, its data
	// whether the sender asks for the same, its version of the record, whose that is, how many chunks it knows, and the
	// sum of their ids
	messageVersion = 'v'
	messageChunk   = 'k' // a chunk: for which buckets, what it says
	messageHave    = 'h' // ids of chunks that the sender knows, and whether it asks for the receiver's
	messageWant    = 'w' // ids of chunks that it asks for
	messageCounts  = 'n' // nodes, each with how many pages it has fetched
	// the record files of which there are lists of pages at risk: a number, whose they are, if not the sender's, for how
	// many milliseconds that node has been missed, their names, the index of one, where in its list the piece begins that
	// follows, and that
	messageRisks = 'l'
	// the answer: the number, whose, whether the sender needs no more of them, names, each with how much of its list the
	// sender has
	messageHaveRisks = 'm'
)

// What another node says is bounded, whatever it says.
const (
	maxItems = 1 << 14 // of a message
	maxName  = 1 << 10 // bytes of a host or a node
	maxBytes = 1 << 16 // of a link
)

var errMessage = errors.New("a message that is none of a mesh")

func (it *item) append(w *varint.Writer) {
	w.Byte(it.kind)
	w.String(it.host)
	w.String(string(it.node))
	w.Int(it.number)
	w.Uint(uint64(len(it.links)))
	for i := range it.links {
		k := &it.links[i]
		*w = append(*w, k.Hash[:]...)
		w.Byte(byte(k.State))
		w.Bytes(k.Item)
	}
}

func readItem(r *varint.Reader) item {
	it := item{kind: r.Byte(), host: r.String(), node: strategy.Node(r.String()), number: r.Int()}
	n := r.Uint()
	// a link takes at least a hash, a state and a length
	if n > uint64(len(r.Rest)/(len(Hash{})+2)) || len(it.host) > maxName || len(it.node) > maxName {
		r.Bad = true
		return item{}
	}
	switch it.kind {
	case itemStore, itemDispatch, itemMarks, itemMoved, itemCheck, itemYield, itemLevel, itemReserve, itemGive, itemReturn,
		itemGuest, itemOpen, itemRecall:
	default:
		r.Bad = true
	}
	if n > 0 {
		it.links = make([]Link, n)
	}
	for i := range it.links {
		k := &it.links[i]
		if copy(k.Hash[:], r.Rest) < len(k.Hash) {
			r.Bad = true
			return item{}
		}
		r.Rest = r.Rest[len(k.Hash):]
		k.State, k.Item = State(r.Byte()), r.Bytes()
		if k.State != Dispatched && k.State != Done || len(k.Item) > maxBytes {
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
		w.Byte(r.code)
		w.String(string(r.node))
		w.Int(r.number)
		w.Uint(uint64(len(r.states)))
		for _, s := range r.states {
			w.Byte(byte(s))
		}
	}
	return w
}

// message takes a message of another node.
func (m *Machine) message(from strategy.Node, data []byte) error {
	r := varint.Reader{Rest: data}
	kind := r.Byte()
	switch kind {
	case messageGather:
		return m.askedGather(from, &r)
	case messageRecord:
		return m.heardRecord(&r)
	case messageVersion:
		return m.heardVersion(from, &r)
	case messageChunk:
		return m.heardChunk(&r)
	case messageHave:
		return m.heardChunks(from, &r)
	case messageWant:
		return m.wantedChunks(from, &r)
	case messageCounts:
		return m.heardCounts(from, &r)
	case messageRisks:
		return m.heardRisks(from, &r)
	case messageHaveRisks:
		return m.heardHave(from, &r)
	}
	id := r.Uint()
	switch kind {
	case messageTally:
		return m.tally(from, id, &r)
	case messageItems:
		var items []item
		for len(r.Rest) > 0 && !r.Bad && len(items) < maxItems {
			items = append(items, readItem(&r))
		}
		if !r.Whole() || len(items) == 0 {
			return errMessage
		}
		m.arrived(from, id, items)
	case messageReplies:
		var replies []reply
		for len(r.Rest) > 0 && !r.Bad && len(replies) < maxItems {
			replies = append(replies, readReply(&r))
		}
		if !r.Whole() {
			return errMessage
		}
		m.answered(from, id, replies)
	default:
		return errMessage
	}
	return nil
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
	return a
}
