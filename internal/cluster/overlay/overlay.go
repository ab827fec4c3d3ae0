package overlay

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
)

// An env is shared by all parts of an Overlay: settings, randomness, and the time and actions of the current step.
type env struct {
	cfg   Config
	rng   *rand.Rand
	began time.Time // time of the first step, from which times are counted
	now   time.Duration
	out   []Action
}

func (e *env) do(a Action) { e.out = append(e.out, a) }

func (e *env) send(to Contact, data []byte) { e.do(Send{To: to, Data: data}) }

// An Overlay is one node's part in the network. It is deterministic: no clock, no I/O, randomness only from the seed in
// its Config. It is not safe for concurrent use.
//
// It routes events and messages to its parts, and answers other nodes' queries. All parts read the table.
type Overlay struct {
	env       env
	table     table
	questions exchange
	absences  absences
	watch     watch
	liveness  liveness
	lookUps   lookUps
	upkeep    upkeep
	timer     time.Duration // time for which it is set; 0: not set
	scratch   []*peer       // scratch
}

// New returns the Overlay of a node without contacts.
func New(cfg Config) *Overlay {
	o := &Overlay{env: env{cfg: cfg.withDefaults(), rng: rand.New(rand.NewPCG(cfg.Seed, 0x6b61646d))}}
	env, table, absences := &o.env, &o.table, &o.absences
	*table = newTable(&env.cfg, &peer{Contact: env.cfg.Self})
	table.prefix, table.version = xor.Bits, 1+env.rng.Uint32N(1<<27)
	absences.env = env
	o.questions = exchange{env: env, table: table, number: env.rng.Uint32N(1 << 20)}
	o.watch = watch{env: env, table: table, absences: absences, questions: &o.questions}
	o.liveness = liveness{env: env, table: table, absences: absences, questions: &o.questions, watch: &o.watch,
		removed: o.upkeep.lost}
	o.lookUps = lookUps{env: env, table: table, absences: absences, ask: o.questions.send, ended: o.upkeep.lookedUp,
		regions: newRegions()}
	o.upkeep = upkeep{env: env, table: table, absences: absences, questions: &o.questions, lookUps: &o.lookUps}
	return o
}

// Self returns the node's own contact.
func (o *Overlay) Self() Contact { return o.table.self.Contact }

// Step applies the events since the last call, in order, and appends the resulting actions to out. It retains neither
// slice.
func (o *Overlay) Step(now time.Time, in []Event, out []Action) []Action {
	if o.env.began.IsZero() {
		o.env.began = now.Add(-time.Nanosecond) // so that now is never 0
	}
	before := o.env.now
	o.env.now, o.env.out = max(o.env.now, now.Sub(o.env.began)), out
	if o.env.now-before > o.env.cfg.Notice && before > 0 { // suspended: the neighbors may have changed
		o.watch.positioned = false
		o.watch.requestLists()
	}
	for _, e := range in {
		o.apply(e)
	}
	o.questions.expire(o.failed)
	o.watch.probeNeighbors()
	if o.upkeep.choresAt <= o.env.now+o.watch.leadTime() {
		o.upkeep.doChores()
	}
	o.lookUps.resume()
	o.watch.extendPrefix()
	o.watch.updateFresh()
	o.plan()
	out, o.env.out = o.env.out, nil
	return out
}

// Closest appends to out the live nodes closest to an id that the node knows, at most n, the closest first; the node
// itself may be one of them. exact reports that no other nodes are closer, as far as this can be known: the node knows
// all nodes in a part of the space that contains the id and these nodes, and they live. No message is sent.
func (o *Overlay) Closest(id xor.ID, n int, out []Contact) (closest []Contact, exact bool) {
	return o.table.appendClosest(id, n, out)
}

// Neighbors appends the nearest live nodes, the nearest first.
func (o *Overlay) Neighbors(out []Contact) []Contact {
	for _, p := range o.table.near {
		out = append(out, p.Contact)
	}
	return out
}

// Contact returns a node of the table.
func (o *Overlay) Contact(node string) (Contact, bool) {
	if p := o.table.known(node); p != nil {
		return p.Contact, true
	}
	return Contact{}, false
}

// Bucket appends the contacts whose ids first differ from the node's own in the bit with this index, as in
// xor.FirstDiff. These are the contacts that have answered, in no particular order, or if there are none, those that
// were not queried yet.
func (o *Overlay) Bucket(index int, out []Contact) []Contact {
	b := o.table.indexed(index)
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

// Occupied returns the bits for which Bucket returns contacts. This node is the closest to an id, as far as it knows,
// if the two ids differ in none of these bits. For a contact in the bucket of a bit is closer to all ids that differ
// from this node in that bit, and farther from all others.
func (o *Overlay) Occupied() (bits xor.ID) {
	for d := range o.table.buckets {
		if b := &o.table.buckets[d]; len(b.live)+len(b.spare) > 0 {
			bits[d/8] |= 0x80 >> (d % 8)
		}
	}
	return bits
}

// Len returns the number of contacts in the table.
func (o *Overlay) Len() int { return o.table.live }

// Size estimates the number of nodes, including this one. It is exact for few nodes, else based on the distances of the
// neighbors.
func (o *Overlay) Size() int {
	if o.table.live <= o.env.cfg.Neighbors || len(o.table.near) == 0 {
		return o.table.live + 1
	}
	var farthest xor.ID
	for _, p := range o.table.near {
		if d := o.table.self.ID.Distance(p.ID); farthest.Less(d) {
			farthest = d
		}
	}
	share := (float64(binary.BigEndian.Uint64(farthest[:8])) + 1) / (1 << 64) // of the space
	return max(int(float64(len(o.table.near))/share), o.table.live) + 1
}

func (o *Overlay) apply(e Event) {
	switch e := e.(type) {
	case Join:
		o.upkeep.join(e.Contacts)
	case Message:
		o.message(e)
	case Fired:
		o.timer = 0
	case Find:
		o.lookUps.find(e)
	case Lost:
		o.questions.failQuestions(Contact{Node: e.Node, ID: o.table.idOf(e.Node)})
	case Suspect:
		if p := o.table.known(e.Node); p != nil {
			o.questions.ping(p)
		}
	case Leave:
		o.leave()
	}
}

func (o *Overlay) message(e Message) {
	m, err := parse(e.Data)
	if err != nil || e.From.Node == "" || len(e.From.Node) > MaxName {
		o.env.do(Refused{Node: e.From.Node, Err: ErrMessage})
		return
	}
	from := e.From
	from.Addrs = clean(from.Addrs)
	if q, asked := o.questions.matchAnswer(from.Node, &m); asked {
		o.answered(q, from, m)
		return
	}
	if from.ID = o.table.idOf(from.Node); from.ID == o.table.id {
		return
	}
	if o.table.leaving && (m.kind == pingQuestion || m.kind == findQuestion || m.kind == nearQuestion) {
		o.env.send(from, varint.Writer{farewell})
		if o.table.live == 0 { // its caller needs a node to take over its data
			o.liveness.heard(from)
		}
		return
	}
	switch m.kind {
	case farewell:
		o.table.dropSpare(from.ID)
		o.absences.mark(from, true)
		if p := o.table.known(from.Node); p != nil {
			o.liveness.remove(p, true)
		}
		// an answer sent before may still arrive, but does not show that the node is alive
		o.questions.dropQuestions(from)
	case pingQuestion:
		o.env.send(from, head(pingAnswer, m.number, 0))
		o.liveness.heard(from)
	case findQuestion:
		o.answerFind(from, m)
		o.liveness.heard(from)
	case nearQuestion:
		o.answerNear(from, m)
		o.liveness.heard(from)
	default: // an answer that matches no query only shows that the node is alive
		o.liveness.heard(from)
	}
}

func (o *Overlay) answered(q question, from Contact, m parsedMessage) {
	from.ID = q.to.ID
	if len(from.Addrs) == 0 {
		from.Addrs = q.to.Addrs
	}
	p := o.liveness.answered(q, from)
	switch {
	case m.kind == nearAnswer && p != nil && p.near:
		o.watch.applyList(p, m)
	case q.healing:
		o.watch.tryListed(from.ID, m)
	case q.lookUp != nil && !q.lookUp.over:
		if q.late {
			q.lookUp.under++ // as before it failed
		}
		o.lookUps.advanceWith(q.lookUp, from, m)
	}
}

func (o *Overlay) failed(q question) {
	if q.lookUp != nil && !q.lookUp.over {
		o.lookUps.missed(q.lookUp, q.to)
	}
	o.liveness.failed(q)
}

func (o *Overlay) answerFind(to Contact, m parsedMessage) {
	o.scratch = o.table.closest(m.id, min(m.want, o.env.cfg.breadth()), o.scratch[:0])
	exact := 0
	if o.table.joined {
		exact = o.table.exact(m.id, o.scratch)
	}
	w := head(findAnswer, m.number, 1+listRoom(o.scratch))
	w.Uint(uint64(exact))
	writeList(&w, o.scratch, o.table.self)
	o.env.send(to, w)
}

func (o *Overlay) answerNear(to Contact, m parsedMessage) {
	var list []*peer
	if m.have != o.table.version {
		list = o.table.near
	}
	w := head(nearAnswer, m.number, 6+listRoom(list))
	w.Uint(uint64(o.table.version))
	w.Bool(m.have != o.table.version)
	if m.have != o.table.version {
		writeList(&w, list, o.table.self)
	}
	o.env.send(to, w)
}

// leave sends a farewell to all contacts.
func (o *Overlay) leave() {
	bye := varint.Writer{farewell}
	for i := range o.table.buckets {
		for _, p := range o.table.buckets[i].live {
			o.env.send(p.Contact, bye)
		}
	}
	o.table.leaving, o.watch.positioned = true, false
}

// plan sets the timer for the next pending work.
func (o *Overlay) plan() {
	due := o.upkeep.choresAt
	due = min(o.questions.due(due), o.table.due)
	if o.watch.positioned && o.table.live == 0 {
		due = min(due, o.watch.fresh-o.watch.trustTime()/2)
	}
	due = max(due, o.env.now+o.env.cfg.Timeout/32)
	if due != o.timer {
		o.timer = due
		o.env.do(Timer{At: o.env.began.Add(due)})
	}
}

// Stats returns the counters of this node's lookups.
func (o *Overlay) Stats() Stats { return o.lookUps.stats }

// LookUps returns the number of lookups in progress for Find.
func (o *Overlay) LookUps() int { return o.lookUps.looking(forCaller) }
