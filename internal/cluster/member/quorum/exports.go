package quorum

import (
	"slices"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// A stage is the progress of an export.
type stage uint8

const (
	// the holder drains hosts, or recovers a dead node's state; the export queries which earlier transfers are complete
	preparing  stage = iota
	clearing         // the holder forgets the hosts of those transfers
	reading          // chunks are read and sent
	forgetting       // all transfers are complete; the holder forgets their hosts
	releasing        // the rest of a dead node's state is to be adopted, or the outbox to be flushed
	awaiting         // the holder does so
	finished
)

// An export is the transfer, under one epoch, of all hosts that one node holds and others own. That node is this one or
// a dead one.
type export struct {
	*sender
	stage     stage
	queries   map[strategy.Node]bool // nodes that have not answered which transfers to them are complete
	queryAt   time.Time              // when they are queried again
	completed []member.Transfer      // under earlier epochs; their hosts must be forgotten
}

// exports guards the hosts that this node holds and others own, and those of dead nodes that it has taken over: it
// transfers each host under one epoch at a time, and forgets it once its owner has it.
//
// Its messages are queryMsg and answerMsg; a sender sends the chunks. Invariants: an export reads hosts only after
// their requests have ended and after it has found out which transfers of earlier epochs are complete; so no host is
// sent to two owners. The holder forgets a host only when a complete transfer contains it.
type exports struct {
	env       *env
	shift     shift
	takeovers *takeovers

	// state of the other parts
	movesKnown func(from strategy.Node) bool // which single hosts move from a node
	placements interface {
		destination(epoch uint64, from strategy.Node) destination
		placed(epoch uint64) bool // the epoch is no earlier than the last finalized one
	}
	arrivals interface {
		undoing() bool // hosts of incomplete transfers are still to be dropped
		receivedFrom(strategy.Node) (complete []member.Transfer, known bool)
	}

	nodes     map[strategy.Node]*export // by the node that held the hosts
	unsure    bool                      // an earlier process may have transferred hosts since the last finalized epoch
	drained   bool                      // no request to a host that belongs to others under the epoch is under way
	forgotten []member.Transfer         // of this node, since the last finalized epoch, whose hosts it has forgotten
}

// newEpoch starts the exports of a new epoch, with everything that the exports of the last one have left undecided. It
// recovers dead nodes whose takeover node this one has become. Attempts grow with each process of this node.
func (x *exports) newEpoch(attempt uint64) {
	before := x.nodes
	x.nodes = map[strategy.Node]*export{}
	x.drained = false
	x.start(x.env.self, attempt, before[x.env.self], x.unsure)
	x.unsure = false
	x.takeovers.newEpoch()
	for dead := range x.takeovers.nodes {
		x.start(dead, attempt, before[dead], before[dead] == nil)
	}
}

// start starts an export. unsure: an earlier process of the node may have transferred hosts under an epoch that is not
// finalized.
func (x *exports) start(from strategy.Node, attempt uint64, last *export, unsure bool) {
	t := x.env.table
	e := &export{queries: map[strategy.Node]bool{}, sender: &sender{env: x.env, from: from, epoch: t.Epoch,
		attempt: attempt, flows: map[strategy.Node]*flow{}}}
	for _, to := range t.receivers(from, x.shift) {
		e.flows[to] = &flow{}
	}
	if unsure {
		t.each(func(n strategy.Node) { e.queries[n] = true })
		delete(e.queries, from)
	}
	if last != nil {
		e.inherit(last)
	}
	if from == x.env.self && len(e.flows)+len(e.queries)+len(e.completed) == 0 {
		return
	}
	x.nodes[from] = e
}

// inherit takes over the undecided transfers of an export of an earlier epoch.
func (e *export) inherit(last *export) {
	for n := range last.queries {
		e.queries[n] = true
	}
	e.completed = append(e.completed, last.completed...)
	if last.stage > forgetting {
		return
	}
	for _, n := range sortedNodes(last.flows) {
		switch f := last.flows[n]; {
		case f.complete:
			e.completed = append(e.completed, member.Transfer{From: e.from, To: n, Epoch: last.epoch})
		case last.ended:
			e.queries[n] = true // the last chunk was sent
		}
	}
}

// advance takes all exports as far as they can go.
func (x *exports) advance() {
	for _, n := range sortedNodes(x.nodes) {
		x.drive(x.nodes[n])
	}
}

func (x *exports) drive(e *export) {
	if e.stage == preparing && x.prepared(e) {
		e.stage = reading
		done := *x.forgottenBy(e.from)
		e.completed = slices.DeleteFunc(e.completed, func(t member.Transfer) bool { return slices.Contains(done, t) })
		if len(e.completed) > 0 {
			e.stage = clearing
			x.env.do(member.Forget{From: e.from, Epoch: e.epoch, Moved: x.movedBy(e.completed),
				Completed: slices.Clone(e.completed)})
		}
	}
	if e.stage == reading {
		x.read(e)
	}
	if e.stage == reading && e.isComplete() {
		e.stage = releasing
		if len(e.flows) > 0 {
			e.stage = forgetting
			x.env.do(x.forget(e))
		}
	}
	if e.stage == releasing {
		x.release(e)
	}
}

// prepared reports whether the hosts to transfer are known and no longer change.
func (x *exports) prepared(e *export) bool {
	if x.sendQueries(e); len(e.queries) > 0 || !x.movesKnown(e.from) {
		return false
	}
	if e.from != x.env.self {
		return x.takeovers.nodes[e.from].ready
	}
	return x.drained && !x.arrivals.undoing()
}

// sendQueries queries, repeatedly, which earlier transfers are complete. The takeover node answers for a dead one.
func (x *exports) sendQueries(e *export) {
	again := !e.queryAt.After(x.env.now)
	if again {
		e.queryAt = x.env.now.Add(x.env.timing.Retry)
	}
	for _, n := range sortedNodes(e.queries) {
		q := queryMsg{from: e.from, to: n, epoch: e.epoch}
		target := n
		if !x.env.table.participates(n) {
			target = x.env.table.takeoverNode(n)
		}
		if target != x.env.self {
			if again {
				x.env.do(member.Send{To: target, Data: q.encode()})
			}
		} else if epochs, known := x.completeUnder(q); known {
			x.applyAnswer(answerMsg{q, epochs})
		}
	}
}

// completeUnder returns the epochs of complete transfers from one node to this one, or to a node that it has taken
// over; not known while that may change.
func (x *exports) completeUnder(q queryMsg) (epochs []uint64, known bool) {
	var received []member.Transfer
	if q.to == x.env.self {
		received, known = x.arrivals.receivedFrom(q.from)
	} else if t := x.takeovers.nodes[q.to]; t != nil {
		received, known = t.received, t.ready
	}
	if !known {
		return nil, false
	}
	for _, t := range received {
		if t.From == q.from && t.To == q.to && t.Epoch > x.env.table.Finalized {
			epochs = append(epochs, t.Epoch)
		}
	}
	return epochs, true
}

// answerQuery answers another node's query, if the answer is final: this node has left the epochs before it behind.
func (x *exports) answerQuery(from strategy.Node, q queryMsg) {
	if x.env.table.Epoch < q.epoch {
		return
	}
	if epochs, known := x.completeUnder(q); known {
		x.env.do(member.Send{To: from, Data: answerMsg{q, epochs}.encode()})
	}
}

func (x *exports) applyAnswer(a answerMsg) {
	e := x.nodes[a.from]
	if e == nil || e.epoch != a.epoch || !e.queries[a.to] {
		return
	}
	delete(e.queries, a.to)
	for _, epoch := range a.epochs {
		if x.placements.placed(epoch) {
			e.completed = append(e.completed, member.Transfer{From: a.from, To: a.to, Epoch: epoch})
		}
	}
}

// read requests chunks as far as the window allows, and resends chunks that were not acknowledged.
func (x *exports) read(e *export) {
	if t := x.takeovers.nodes[e.from]; !e.ended && (len(e.flows) == 0 || t != nil && t.released) {
		e.end()
	}
	e.resend()
	for range e.request() {
		x.env.do(member.Read{From: e.from, Epoch: e.epoch, Attempt: e.attempt, Owner: x.destination(e)})
	}
}

// destination returns the owners of the hosts that an export transfers; "" for a host that stays.
func (x *exports) destination(e *export) destination {
	return x.placements.destination(e.epoch, e.from)
}

func (x *exports) chunk(c member.Chunk) {
	e := x.nodes[c.From]
	if e != nil && e.epoch == c.Epoch && e.attempt == c.Attempt && e.stage == reading && !e.ended {
		e.chunk(c.To, c.Data)
	}
}

func (x *exports) ack(from strategy.Node, a ackMsg) {
	if e := x.nodes[a.t.From]; e != nil && e.epoch == a.t.Epoch && from == a.t.To {
		e.ack(from, a)
	}
}

// movedBy returns a function that reports whether a host moved with one of the given transfers.
func (x *exports) movedBy(completed []member.Transfer) member.Moved {
	completed = slices.Clone(completed)
	to := make([]destination, len(completed))
	for i, t := range completed {
		to[i] = x.placements.destination(t.Epoch, t.From)
	}
	return func(host string, came uint64) bool {
		for i, t := range completed {
			if came < t.Epoch && to[i](host) == t.To {
				return true
			}
		}
		return false
	}
}

// forget forgets the hosts that an export has transferred.
func (x *exports) forget(e *export) member.Forget {
	f := member.Forget{From: e.from, Epoch: e.epoch}
	for _, to := range sortedNodes(e.flows) {
		f.Completed = append(f.Completed, member.Transfer{From: e.from, To: to, Epoch: e.epoch})
	}
	if owner := x.destination(e); e.sent {
		f.Moved = func(host string, came uint64) bool { return came < f.Epoch && owner(host) != "" }
	}
	return f
}

// forgot applies that the holder has forgotten the hosts of complete transfers. They are remembered: a host that comes
// back later is not forgotten with them again.
func (x *exports) forgot(f member.Forgotten) {
	e := x.nodes[f.From]
	if e == nil || e.epoch != f.Epoch {
		return
	}
	done := x.forgottenBy(e.from)
	switch e.stage {
	case clearing:
		*done = append(*done, e.completed...)
		e.completed, e.stage = nil, reading
	case forgetting:
		*done = append(*done, x.forget(e).Completed...)
		e.stage = releasing
	}
}

// forgottenBy returns the list of transfers from a node whose hosts it has forgotten.
func (x *exports) forgottenBy(from strategy.Node) *[]member.Transfer {
	if t := x.takeovers.nodes[from]; t != nil {
		return &t.forgotten
	}
	return &x.forgotten
}

func (x *exports) release(e *export) {
	t := x.takeovers.nodes[e.from]
	switch {
	case t != nil && !t.released:
		e.stage = awaiting
		x.env.do(member.AdoptOutbox{Node: e.from})
	case t == nil && x.env.table.leaves(e.from):
		e.stage = awaiting
		x.env.do(member.Flush{Epoch: e.epoch})
	default:
		e.stage = finished
	}
}

func (x *exports) released(n strategy.Node) {
	if e := x.nodes[n]; e != nil && e.stage == awaiting {
		e.stage = finished
	}
}

func (x *exports) flushed(epoch uint64) {
	if e := x.nodes[x.env.self]; e != nil && e.epoch == epoch {
		x.released(x.env.self)
	}
}

// drain waits for the requests to hosts that this node will transfer. For a member that keeps most hosts, it waits only
// for those that move: a slow server for another host does not delay the epoch.
func (x *exports) drain() {
	if x.nodes[x.env.self] == nil {
		return
	}
	d := member.Drain{Epoch: x.env.table.Epoch}
	if x.shift == shiftsNone && x.env.table.has(x.env.self) && x.movesKnown(x.env.self) {
		to := x.placements.destination(d.Epoch, x.env.self)
		d.Hosts = func(host string) bool { return to(host) != "" }
	}
	x.env.do(d)
}

func (x *exports) applyDrained(epoch uint64) {
	x.drained = x.drained || x.env.table != nil && epoch == x.env.table.Epoch
}

// epochFinalized drops all exports: no node queries transfers of finalized epochs.
func (x *exports) epochFinalized() {
	clear(x.nodes)
	x.takeovers.epochFinalized()
	x.forgotten = slices.DeleteFunc(x.forgotten, func(t member.Transfer) bool { return t.Epoch <= x.env.table.Finalized })
}

// unfinished reports whether this node still holds hosts of others, or may.
func (x *exports) unfinished() bool {
	e := x.nodes[x.env.self]
	return e != nil && e.stage != finished
}

// forgetsPending reports whether this node still has to forget hosts of transfers under earlier epochs: they may come
// back with transfers under this one.
func (x *exports) forgetsPending() bool {
	e := x.nodes[x.env.self]
	return e != nil && e.stage < reading
}

// finished reports whether no hosts of other owners are left here or with the dead nodes that this one has taken over.
func (x *exports) finished() bool {
	for _, e := range x.nodes {
		if e.stage != finished {
			return false
		}
	}
	return true
}

// due returns the time of the next timeout of an export; zero if there is none.
func (x *exports) due() (at time.Time) {
	for _, e := range x.nodes {
		if len(e.queries) > 0 {
			at = earlier(at, e.queryAt)
		}
		at = earlier(at, e.sender.due())
	}
	return at
}
