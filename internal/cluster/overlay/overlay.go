package overlay

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
)

// An Overlay is one node's part in the network. It is deterministic: no clock, no I/O, randomness only from the seed in
// its Config. Its methods are called by one goroutine at a time.
type Overlay struct {
	table
	cfg   Config
	rng   *rand.Rand
	began time.Time // the first step; times are counted from there
	now   time.Duration
	timer time.Duration // for when it is set; 0: it is not
	out   []Action

	questions []question
	late      []question // that have failed, the last of them: a ring
	lateAt    int
	number    uint32 // of the last question
	lookUps   []*lookUp
	absent    []absence // nodes others have told of that did not answer; a ring
	absentAt  int
	departed  []Contact // that were in the table and died; a ring
	departAt  int
	regions   regions
	bootstrap []Contact // the last that Join named

	chores  time.Duration // when what is done now and then is done next
	selfAt  time.Duration // when the node looks itself up again
	healAt  time.Duration // when it asks a node again that is gone
	pause   time.Duration // from then until the next time; it grows fourfold
	losses  int           // neighbours that died since it did
	joined  bool          // it has looked itself up, or is the first
	settled bool          // all neighbours have told their lists since one died
	placed  bool          // they did so once, and no bucket is empty only because nobody has looked
	fresh   time.Duration // until when Fresh has said

	stats Stats

	some []*peer // scratch
	ids  []xor.ID
	met  []*peer // those of ids that are in the table
}

// An absence is a node that did not answer: what others tell of it means nothing until then.
type absence struct {
	id     uint64
	places uint64 // digest of the addresses at which it did not answer
	left   bool   // it has said farewell, and answers at none
	until  time.Duration
}

const (
	mostAbsent   = 64 // absences
	mostDeparted = 16 // departed contacts that are remembered, and such that Join names
	deaf         = 4  // intervals between exchanges in which a contact must have answered once
	slack        = 16 // a neighbour is asked early by up to a slack of the time between two exchanges, with others
	mostLate     = 16 // questions that have failed, of which an answer is still one
	mostAsked    = 8  // times K: how many questions a look-up has in all
	firstPause   = 2  // Timeouts from the first time that a node looks itself up to the second
	lastAlone    = 30 // Timeouts between two times while it has no contacts, at most
)

// New returns the Overlay of a node that knows nobody yet.
func New(cfg Config) *Overlay {
	o := &Overlay{cfg: cfg.withDefaults(), rng: rand.New(rand.NewPCG(cfg.Seed, 0x6b61646d))}
	o.table = newTable(&o.cfg, &peer{Contact: o.cfg.Self})
	o.prefix, o.regions = xor.Bits, newRegions()
	o.table.version = 1 + o.rng.Uint32N(1<<27)
	o.number = o.rng.Uint32N(1 << 20)
	return o
}

// Self is the node's own contact.
func (o *Overlay) Self() Contact { return o.self.Contact }

// Step takes the events since the last call, in order, and appends the actions it wants done, in order, to out. It
// keeps neither slice.
func (o *Overlay) Step(now time.Time, in []Event, out []Action) []Action {
	if o.began.IsZero() {
		o.began = now.Add(-time.Nanosecond) // so that 0 is never
	}
	before := o.now
	o.now, o.out = max(o.now, now.Sub(o.began)), out
	if o.now-before > o.cfg.Notice && before > 0 { // it has slept: its neighbours may be others
		o.placed = false
		o.unsettle()
	}
	for _, e := range in {
		o.take(e)
	}
	o.expire()
	o.askNeighbours()
	if o.chores <= o.now+o.early() {
		o.doChores()
	}
	o.resume()
	o.settle()
	o.freshen()
	o.plan()
	out, o.out = o.out, nil
	return out
}

// Closest appends to out the live nodes closest to an id that the node knows, n of them at most, the closest first; it
// may be one of them itself. exact says that they are the closest there are, as far as it can be known: the node knows
// all nodes in a part of the space in which the id lies and these do, and they live. No message is sent.
func (o *Overlay) Closest(id xor.ID, n int, out []Contact) (closest []Contact, exact bool) {
	o.some = o.closest(id, n, o.some[:0])
	exact = o.joined && len(o.some) > 0 && o.exact(id, o.some) >= min(n, len(o.some)+1)
	for _, p := range o.some {
		out = append(out, p.Contact)
		exact = exact && p.fails == 0
	}
	return out, exact
}

// Neighbours appends the nearest nodes that are known to live, the nearest first.
func (o *Overlay) Neighbours(out []Contact) []Contact {
	for _, p := range o.near {
		out = append(out, p.Contact)
	}
	return out
}

// Contact is what is known of a node that is in the table.
func (o *Overlay) Contact(node string) (Contact, bool) {
	if p := o.known(node); p != nil {
		return p.Contact, true
	}
	return Contact{}, false
}

// Bucket appends the contacts whose ids differ from the node's own first in the bit of an index, as xor.FirstDiff has
// it: those that have answered, in no order; or, where there are none, those that were heard of and not asked yet.
func (o *Overlay) Bucket(index int, out []Contact) []Contact {
	b := o.indexed(index)
	if b == nil {
		return out
	}
	peers := b.live
	if len(peers) == 0 {
		peers = b.spare
	}
	for _, p := range peers {
		out = append(out, p.Contact)
	}
	return out
}

// Occupied has the bit of each bucket set in which Bucket has somebody. This node is the closest to an id, as far as it
// knows, if the two differ in none of these bits: who lies in the bucket of a bit is closer to all ids that differ from
// this node in it, whatever else they differ in, and farther from all others.
func (o *Overlay) Occupied() (bits xor.ID) {
	for d := range o.buckets {
		if b := &o.buckets[d]; len(b.live)+len(b.spare) > 0 {
			bits[d/8] |= 0x80 >> (d % 8)
		}
	}
	return bits
}

// indexed is a bucket; nil if it never had anybody.
func (o *Overlay) indexed(index int) *bucket {
	if d := xor.Bits - 1 - index; d >= 0 && d < len(o.buckets) {
		return &o.buckets[d]
	}
	return nil
}

// Len is how many contacts the table has.
func (o *Overlay) Len() int { return o.live }

// Size is about how many nodes there are, this one among them: exact where they are few, else by how close to this one
// its neighbours lie.
func (o *Overlay) Size() int {
	if o.live <= o.cfg.Neighbours || len(o.near) == 0 {
		return o.live + 1
	}
	var farthest xor.ID
	for _, p := range o.near {
		if d := o.self.ID.Distance(p.ID); farthest.Less(d) {
			farthest = d
		}
	}
	share := (float64(binary.BigEndian.Uint64(farthest[:8])) + 1) / (1 << 64) // of the space
	return max(int(float64(len(o.near))/share), o.live) + 1
}

func (o *Overlay) do(a Action) { o.out = append(o.out, a) }

func (o *Overlay) take(e Event) {
	switch e := e.(type) {
	case Join:
		o.join(e.Contacts)
	case Message:
		o.message(e)
	case Fired:
		o.timer = 0
	case Find:
		o.find(e)
	case Lost:
		o.lost(Contact{Node: e.Node, ID: o.idOf(e.Node)})
	case Doubt:
		if p := o.known(e.Node); p != nil {
			o.ping(p)
		}
	case Leave:
		o.leave()
	}
}

// idOf is the id of a node, which need not be computed for a contact.
func (o *Overlay) idOf(node string) xor.ID {
	if p := o.known(node); p != nil {
		return p.ID
	}
	return IDOf(node).Truncate(o.cfg.Width)
}

// message takes in what another node has sent.
func (o *Overlay) message(e Message) {
	m, err := parse(e.Data)
	if err != nil || e.From.Node == "" || len(e.From.Node) > MaxName {
		o.do(Refused{Node: e.From.Node, Err: ErrMessage})
		return
	}
	from := e.From
	from.Addrs = clean(from.Addrs)
	if q, asked := o.asked(from.Node, &m); asked {
		o.answered(q, from, m)
		return
	}
	if from.ID = o.idOf(from.Node); from.ID == o.id {
		return
	}
	if o.left && (m.kind == pingQuestion || m.kind == findQuestion || m.kind == nearQuestion) {
		o.send(from, varint.Writer{farewell})
		if o.live == 0 { // it looks for somebody to whom its caller can give what it has
			o.hear(from)
		}
		return
	}
	switch m.kind {
	case farewell:
		o.dropSpare(from.ID)
		o.markAbsent(from, true)
		if p := o.known(from.Node); p != nil {
			o.bury(p, true)
		}
		o.forgo(from) // what it has answered before may come yet, and is no sign of life
	case pingQuestion:
		o.send(from, head(pingAnswer, m.number, 0))
		o.hear(from)
	case findQuestion:
		o.answerFind(from, m)
		o.hear(from)
	case nearQuestion:
		o.answerNear(from, m)
		o.hear(from)
	default: // an answer to no question that is under way is a sign of life, no more
		o.hear(from)
	}
}

func (o *Overlay) send(to Contact, data []byte) { o.do(Send{To: to, Data: data}) }

func (o *Overlay) answerFind(to Contact, m note) {
	o.some = o.closest(m.id, min(m.want, o.cfg.breadth()), o.some[:0])
	exact := 0
	if o.joined {
		exact = o.exact(m.id, o.some)
	}
	w := head(findAnswer, m.number, 1+listRoom(o.some))
	w.Uint(uint64(exact))
	writeList(&w, o.some, o.self)
	o.send(to, w)
}

func (o *Overlay) answerNear(to Contact, m note) {
	var list []*peer
	if m.have != o.version {
		list = o.near
	}
	w := head(nearAnswer, m.number, 6+listRoom(list))
	w.Uint(uint64(o.version))
	w.Bool(m.have != o.version)
	if m.have != o.version {
		writeList(&w, list, o.self)
	}
	o.send(to, w)
}

// hear takes a question for a sign of life. It returns the contact if it is in the table; one that is not is asked
// whether it answers, if its bucket wants more.
func (o *Overlay) hear(from Contact) *peer {
	if p := o.known(from.Node); p != nil {
		p.heard = o.now
		o.renew(p, from)
		if o.hears(p) {
			p.fails = 0
		}
		next := min(o.now+o.interval(), p.answered+deaf*o.cfg.every())
		if p.near && depth(o.id, p.ID) == o.guards() {
			next = min(next, max(p.vouched+o.cfg.every()/2, o.now))
		}
		if p.near && p.version == 0 { // that it asks is no sign that it has told its neighbours
			next = min(next, p.next)
		}
		o.askAt(p, next)
		return p
	}
	switch {
	case o.isNear(from.ID):
		o.tryNear(from, 0)
	case o.wants(o.bucket(from.ID)):
		o.try(from, pingQuestion, 0)
	default:
		o.wait(from)
	}
	return nil
}

// hears reports whether a contact has answered not long ago. One that asks and never answers does not live.
func (o *Overlay) hears(p *peer) bool { return o.now-p.answered < deaf*o.cfg.every() }

// renew takes a contact's addresses as the transport has them. If they are others than before, neighbours are told
// again: who could not reach it may do so now, as when a node behind a router has found a relay.
func (o *Overlay) renew(p *peer, c Contact) {
	if len(c.Addrs) == 0 || slices.Equal(p.Addrs, c.Addrs) || places(p.Addrs) == places(c.Addrs) {
		return
	}
	p.Addrs = c.Addrs
	if p.near {
		o.version++
	}
}

// wait puts a node into its bucket's replacement cache; the contact there that was not heard of for longest is asked
// whether it still lives.
func (o *Overlay) wait(c Contact) {
	if p := o.knownSpare(c.ID); p != nil {
		p.heard = o.now
		o.renew(p, c)
	} else {
		o.keep(c, o.now)
	}
	if p := stalest(o.bucket(c.ID).live); p != nil && o.now-p.heard > o.cfg.Check/4 {
		o.ping(p)
	}
}

// admit takes note that a node has answered. It returns it if it is in the table.
func (o *Overlay) admit(c Contact, p *peer) *peer {
	if p == nil || !p.live {
		p = o.known(c.Node)
	}
	if p == nil {
		if !o.isNear(c.ID) && !o.hasRoom(o.bucket(c.ID)) {
			o.wait(c)
			return nil
		}
		o.dropSpare(c.ID)
		p = &peer{Contact: c}
		o.do(Joined{Contact: c})
		if o.live == 0 {
			o.forgetAbsent()
		}
		if gone := o.insert(p); gone != nil {
			o.do(Gone{Node: gone.Node, ID: gone.ID})
			o.keep(gone.Contact, gone.heard)
		}
	}
	p.heard, p.answered, p.fails = o.now, o.now, 0
	next := o.interval()
	if p.near && depth(o.id, p.ID) == o.guards() {
		next /= 2
	}
	if p.near && p.version == 0 && !o.placed { // it has yet to tell its neighbours
		next = 0
	}
	o.askAt(p, o.now+next)
	o.renew(p, c)
	return p
}

// bury takes a contact out of the table that is dead, or has left. One that waits for its place is asked whether it
// lives.
func (o *Overlay) bury(p *peer, left bool) {
	near := p.near
	if o.remove(p); near {
		o.losses++
		if o.watched() < o.prefix {
			o.unsettle()
		}
	}
	o.markAbsent(p.Contact, left)
	o.depart(p.Contact)
	o.do(Gone{Node: p.Node, ID: p.ID, Dead: true, Left: left, Near: near})
	if spare := freshest(o.bucket(p.ID).spare); spare != nil {
		o.try(spare.Contact, pingQuestion, 0)
	}
}

// forgetAbsent forgets which nodes did not answer while this one had no contact, but for those that have said farewell:
// it was cut off itself. Others would ask it in their turn, but not one that is about to leave.
func (o *Overlay) forgetAbsent() {
	o.absent = slices.DeleteFunc(o.absent, func(a absence) bool { return !a.left })
	o.absentAt = 0
}

func (o *Overlay) markAbsent(c Contact, left bool) {
	a := absence{short(c.ID), places(c.Addrs), left, o.now + 2*o.cfg.Notice}
	if len(o.absent) < mostAbsent {
		o.absent = append(o.absent, a)
		return
	}
	o.absent[o.absentAt] = a
	o.absentAt = (o.absentAt + 1) % mostAbsent
}

// isAbsent reports whether a node did not answer lately at the addresses that are known of it now.
func (o *Overlay) isAbsent(c Contact) bool {
	return slices.ContainsFunc(o.absent, func(a absence) bool {
		return a.id == short(c.ID) && a.until > o.now && (a.left || a.places == places(c.Addrs))
	})
}

func (o *Overlay) depart(c Contact) {
	if len(o.departed) < mostDeparted {
		o.departed = append(o.departed, c)
		return
	}
	o.departed[o.departAt] = c
	o.departAt = (o.departAt + 1) % mostDeparted
}

// leave says farewell to all contacts.
func (o *Overlay) leave() {
	bye := varint.Writer{farewell}
	for i := range o.buckets {
		for _, p := range o.buckets[i].live {
			o.send(p.Contact, bye)
		}
	}
	o.left, o.placed = true, false
}

// plan sets the timer for what is due first.
func (o *Overlay) plan() {
	due := o.chores
	for i := range o.questions {
		due = min(due, o.questions[i].until)
	}
	due = min(due, o.due)
	if o.placed && o.live == 0 {
		due = min(due, o.fresh-o.margin()/2)
	}
	due = max(due, o.now+o.cfg.Timeout/32)
	if due != o.timer {
		o.timer = due
		o.do(Timer{At: o.began.Add(due)})
	}
}

// LookUps is how many are under way for Find.
func (o *Overlay) LookUps() int { return o.looking(forCaller) }
