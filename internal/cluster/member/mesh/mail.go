package mesh

import (
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// Nodes speak to each other in items. What a node has for another waits in a lane, and goes with whatever else waits
// there, as a flight, which is sent until it is answered. An answer has a reply for each item, and comes when what the
// item asked for is durable. So an item is done at least once, and doing it twice changes nothing. Where the other does
// not answer for long, or is gone, items come back.

// The kinds of items.
const (
	// here is what is known of URLs of a host, whose target is, or was, node: keep it. number: itemGiven, or 0. Reply:
	// what was known of each; node: the host's target, if the sender may have become the first backup
	itemStore    = 's'
	itemDispatch = 'd' // fetch these; number: the host's timing; node: who may fetch the host yet
	itemMarks    = 'm' // these were fetched
	itemMoved    = 'v' // the host is node's to fetch now; number: its timing
	itemCheck    = 'c' // have you this host?
	// stop to fetch this host: it is the sender's now. Reply: number, its timing; node, with replyYes to whom it goes if
	// not to the sender, with replyLater for whom it waits, with replyNo who may fetch it
	itemYield   = 'y'
	itemLevel   = 'l' // how much have you to do? Reply: number, the level
	itemReserve = 'r' // keep room for so many blocks: number. Reply: number, for how many
	itemGive    = 'g' // fetch this host, though it is the sender's
	itemReturn  = 'b' // nothing of this host is left, which is yours
	itemGuest   = 'u' // do you fetch this host of mine?
	itemRecall  = 'k' // give this host up, as if it were another's: some of what waits of it is done
	itemOpen    = 'o' // how many URLs of this host are open, as you, one of its backups, know it? Reply: number
)

// itemGiven is the number of an itemStore by which a node gives all that it knows, to one that has come to its part of
// the network.
const itemGiven = 1

// An item is about one host.
type item struct {
	kind   byte
	host   string
	links  []Link
	node   strategy.Node
	number int64
}

// The codes of replies.
const (
	replyYes   = 'y'
	replyNo    = 'n' // not this node's business; node: whose it may be
	replyLater = 'l' // ask again
	replyMoved = 'v' // node has it, whoever is closest
	replyIdle  = 'i' // to itemCheck: nothing of it waits here
)

type reply struct {
	code   byte
	node   strategy.Node
	states []State // of the item's links, if any
	number int64
}

// works reports whether an item may leave somebody with something to do for the crawl. The others are upkeep: nodes
// that have nothing to do send them, too, and where there are many, some are always on their way.
func (it *item) works() bool {
	switch it.kind {
	case itemStore:
		return anyOpen(it.links)
	case itemOpen, itemLevel, itemGuest, itemReturn:
		return false
	}
	return true
}

// anyOpen reports whether one of some links is yet to be fetched.
func anyOpen(links []Link) bool {
	return slices.ContainsFunc(links, func(k Link) bool { return k.State == Dispatched })
}

// A parcel is an item on its way, and what is done when it has come.
type parcel struct {
	item
	works bool
	// done is called with the reply; nil: to is gone, or silent.
	done func(to strategy.Node, r *reply)
}

// A lane is what is on its way to one node.
type lane struct {
	to      strategy.Node
	queue   []*parcel
	flights []*flight
	ready   bool // is in Machine.ready
}

type flight struct {
	id      uint64
	parcels []*parcel
	data    []byte
	tries   int
	again   time.Time
	over    bool // it was answered, or given up
}

const (
	maxFlight  = 64 << 10 // bytes of a message, but for its last item
	maxItem    = 500      // links of an item
	window     = 2        // flights of a lane
	maxTries   = 3
	maxInbound = 1024 // flights of others that are being done at once; who sent more sends them again
	// flights of one node that are being done at once: a node that keeps to window has two, and some from before a restart
	maxInboundOf = 8 * window
	maxArrived   = 1 << 15 // flights of which it is known when they first arrived
	// A flight that arrives again so long after the first time is none that its sender still waits for: see silent.
	staleAfter = 4 * retry << (maxTries - 1)
)

// retry is how long an answer is waited for the first time, doubled with each.
const retry = time.Second

// post sends an item to a node, this one too.
func (m *Machine) post(to strategy.Node, it item, done func(to strategy.Node, r *reply)) {
	l := m.lanes[to]
	if l == nil {
		l = &lane{to: to}
		m.lanes[to] = l
	}
	p := &parcel{it, it.works(), done}
	if p.works {
		m.posted++
	}
	l.queue = append(l.queue, p)
	m.wake(l)
}

// over ends a parcel.
func (m *Machine) over(p *parcel, to strategy.Node, r *reply) {
	if p.works {
		m.posted--
	}
	p.done(to, r)
}

// wake has a lane looked at by deliver.
func (m *Machine) wake(l *lane) {
	if !l.ready {
		l.ready = true
		m.ready = append(m.ready, l)
	}
}

// deliver sends what has been posted, as far as windows allow. It reports whether something was for this node itself.
func (m *Machine) deliver() (more bool) {
	ready := m.ready
	m.ready = nil
	for _, l := range ready {
		l.ready = false
		if l.to == m.cfg.Self {
			queue := l.queue
			l.queue = nil
			for _, p := range queue {
				if p.works { // who does it is not idle
					m.posted--
				}
				m.receive(l.to, p.item, func(r reply) { p.done(l.to, &r) })
			}
			more = true
			continue
		}
		for len(l.flights) < window && len(l.queue) > 0 {
			m.fly(l)
		}
	}
	return more
}

// fly makes a flight of what waits in a lane.
func (m *Machine) fly(l *lane) {
	m.last++
	f := &flight{id: m.last}
	w := varint.Writer{messageItems}
	w.Uint(f.id)
	n := 0
	for n < len(l.queue) && (len(w) < maxFlight || n == 0) {
		l.queue[n].item.append(&w)
		n++
	}
	f.parcels, f.data = l.queue[:n:n], w
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	l.flights = append(l.flights, f)
	m.send(l.to, f)
}

func (m *Machine) send(to strategy.Node, f *flight) {
	f.again = m.now.Add(retry << f.tries)
	f.tries++
	m.at(f.again, &f.over, func() { m.silent(to, f) })
	m.do(Send{To: to, Data: f.data})
}

// silent sends a flight again that has had no answer, or gives it up.
func (m *Machine) silent(to strategy.Node, f *flight) {
	l := m.lanes[to]
	if l == nil || f.again.After(m.now) {
		return
	}
	for _, g := range l.flights {
		if g == f {
			if f.tries >= maxTries {
				m.do(Doubt{Node: to})
				m.giveUp(to)
			} else {
				m.send(to, f)
			}
			return
		}
	}
}

// giveUp lets all items come back that are on their way to a node.
func (m *Machine) giveUp(to strategy.Node) {
	l := m.lanes[to]
	if l == nil || to == m.cfg.Self {
		return
	}
	delete(m.lanes, to)
	for _, f := range l.flights {
		f.over = true
		for _, p := range f.parcels {
			m.over(p, to, nil)
		}
	}
	for _, p := range l.queue {
		m.over(p, to, nil)
	}
}

// answered takes the replies to a flight.
func (m *Machine) answered(from strategy.Node, id uint64, replies []reply) {
	l := m.lanes[from]
	if l == nil {
		return
	}
	for i, f := range l.flights {
		if f.id != id || len(f.parcels) != len(replies) {
			continue
		}
		f.over = true
		l.flights = append(l.flights[:i:i], l.flights[i+1:]...)
		if len(l.queue) > 0 {
			m.wake(l)
		} else if len(l.flights) == 0 {
			delete(m.lanes, from)
		}
		for j, p := range f.parcels {
			m.over(p, from, &replies[j])
		}
		return
	}
}

// answerTime is how long an answer may wait for something slow, such as a host's own answer: who waits for this node's
// would take it for gone some time after.
const answerTime = retry / 2

// A prompt answer is another one, such as replyLater, where none is given in time.
type prompt struct {
	answer func(reply)
	over   bool
}

func (m *Machine) promptly(answer func(reply), late func() reply) *prompt {
	p := &prompt{answer: answer}
	m.at(m.now.Add(answerTime), &p.over, func() { p.give(late()) })
	return p
}

func later() reply { return reply{code: replyLater} }

// give gives an answer, unless one was given.
func (p *prompt) give(r reply) {
	if !p.over {
		p.over = true
		p.answer(r)
	}
}

// An inbound is a flight of another node that is being done.
type inbound struct {
	from    strategy.Node
	id      uint64
	replies []reply
	left    int
}

type inboundKey struct {
	from strategy.Node
	id   uint64
}

// arrived does the items of a flight. One that was sent long ago is dropped: doing it twice changes nothing at once, but
// later a URL that it dispatches may have been fetched by another node, and would be fetched again here.
func (m *Machine) arrived(from strategy.Node, id uint64, items []item) {
	key := inboundKey{from, id}
	if _, under := m.inbound[key]; under || len(m.inbound) >= maxInbound || m.inboundOf[from] >= maxInboundOf {
		return
	}
	if first, again := m.arrivals.Get(key); !again {
		m.arrivals.Put(key, m.now)
	} else if m.now.Sub(first) > staleAfter {
		return
	}
	m.inboundOf[from]++
	works := slices.ContainsFunc(items, func(it item) bool { return it.works() })
	m.inbound[key] = works
	if works {
		m.came++
		m.working++
	}
	in := &inbound{from: from, id: id, replies: make([]reply, len(items)), left: len(items)}
	for i, it := range items {
		m.receive(from, it, func(r reply) {
			in.replies[i] = r
			if in.left--; in.left == 0 {
				delete(m.inbound, key)
				if m.inboundOf[from]--; m.inboundOf[from] == 0 {
					delete(m.inboundOf, from)
				}
				if works {
					m.working--
				}
				m.do(Send{To: from, Data: encodeReplies(in.id, in.replies)})
			}
		})
	}
}

// receive does an item, and answers, now or later.
func (m *Machine) receive(from strategy.Node, it item, answer func(reply)) {
	switch it.kind {
	case itemStore:
		m.store(from, it, answer)
	case itemDispatch:
		m.dispatched(from, it, answer)
	case itemMarks:
		m.marked(from, it, answer)
	case itemMoved:
		m.hostMoved(it, answer)
	case itemCheck:
		m.checked(from, it, answer)
	case itemYield:
		m.yield(from, it, answer)
	case itemLevel:
		m.tellLevel(answer)
	case itemReserve:
		m.reserve(from, it, answer)
	case itemGive:
		m.takeGuest(from, it, answer)
	case itemReturn:
		m.returned(from, it, answer)
	case itemGuest:
		m.hasGuest(it, answer)
	case itemOpen:
		m.tellOpen(it, answer)
	case itemRecall:
		m.recalled(it, answer)
	}
}
