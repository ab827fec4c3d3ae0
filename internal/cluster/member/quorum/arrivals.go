package quorum

import (
	"slices"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// maxEarly bounds the bytes of chunks that are buffered because they arrived before others; the sender sends the rest
// again.
const maxEarly = 16 << 20

// arrivals guards the transfers to this node: it passes their chunks to the holder, in order, and knows which transfers
// are complete.
//
// Its messages are chunkMsg, and ackMsg in return. Invariants: a chunk is acknowledged only when the holder has
// journaled it. A transfer that ends incomplete is undone; no other transfer from its sender begins before. A complete
// transfer is remembered until its epoch is finalized; each further chunk of it is answered as complete.
type arrivals struct {
	env            *env
	process        uint64      // in acknowledgments: greater with each process of this node
	forgetsPending func() bool // this node still has to forget hosts that these transfers may bring back

	expected map[strategy.Node]bool     // nodes whose transfers under the epoch are not complete
	incoming map[strategy.Node]*arrival // of the epoch
	early    int                        // bytes buffered, of all arrivals
	undone   []*arrival                 // being undone, or may still become complete
	received []member.Transfer          // complete, since the last finalized epoch
}

// An arrival is an incomplete transfer to this node.
type arrival struct {
	t        member.Transfer
	sender   strategy.Node
	issued   uint64              // chunks passed to the holder
	taken    uint64              // of these, journaled
	ending   bool                // the last chunk was passed to it
	dropping bool                // Drop was sent to the holder
	early    map[uint64]chunkMsg // buffered, by number
}

// start undoes transfers that an earlier process has received in part.
func (a *arrivals) start(process uint64, partial []member.Transfer) {
	a.process = process
	for _, t := range partial {
		a.retire(&arrival{t: t})
	}
}

// chunk applies a chunk of a transfer to this node. It does not answer chunks of another epoch: both ends will learn of
// the new one.
func (a *arrivals) chunk(from strategy.Node, c chunkMsg) {
	t := c.t
	if t.To != a.env.self || t.Epoch != a.env.table.Epoch || !a.env.table.has(a.env.self) {
		return
	}
	if !a.expected[t.From] { // it is complete, perhaps for long: the epoch may be finalized, and this chunk late
		a.env.do(member.Send{To: from, Data: ackMsg{t: t, complete: true}.encode()})
		return
	}
	if a.forgetsPending() || slices.ContainsFunc(a.undone, func(u *arrival) bool { return u.t.From == t.From }) {
		return
	}
	c.data = slices.Clone(c.data)
	in := a.incoming[t.From]
	if in == nil || in.t.Attempt < t.Attempt {
		if in != nil {
			if a.discard(in); in.issued > 0 {
				a.retire(in)
				delete(a.incoming, t.From)
				return // the new attempt starts when the old one is undone
			}
		}
		in = &arrival{t: t}
		a.incoming[t.From] = in
	}
	switch {
	case in.t.Attempt != t.Attempt:
		return
	case c.seq != in.issued:
		a.buffer(in, c)
		a.ack(from, in)
		return
	}
	in.sender = from
	a.issue(in, c)
	for next, there := in.early[in.issued]; there; next, there = in.early[in.issued] {
		delete(in.early, next.seq)
		a.early -= len(next.data)
		a.issue(in, next)
	}
}

// buffer holds a chunk that arrived before others, if there is room.
func (a *arrivals) buffer(in *arrival, c chunkMsg) {
	if _, has := in.early[c.seq]; has || c.seq < in.issued || len(in.early) >= a.env.timing.Window ||
		a.early+len(c.data) > maxEarly {
		return
	}
	if in.early == nil {
		in.early = map[uint64]chunkMsg{}
	}
	in.early[c.seq] = c
	a.early += len(c.data)
}

func (a *arrivals) discard(in *arrival) {
	for _, c := range in.early {
		a.early -= len(c.data)
	}
	in.early = nil
}

func (a *arrivals) issue(in *arrival, c chunkMsg) {
	in.issued++
	in.ending = c.last
	a.env.do(member.Import{Transfer: c.t, Seq: c.seq, Last: c.last, Data: c.data})
}

func (a *arrivals) ack(to strategy.Node, in *arrival) {
	a.env.do(member.Send{To: to, Data: ackMsg{t: in.t, next: in.taken, process: a.process}.encode()})
}

// taken applies that the holder has journaled a chunk.
func (a *arrivals) taken(t member.Transfer) {
	in, i := a.incoming[t.From], -1
	if in == nil || in.t != t {
		if i = a.findUndone(t); i < 0 {
			return
		}
		in = a.undone[i]
	}
	in.taken++
	switch whole := in.ending && in.taken == in.issued; {
	case whole && i >= 0: // it became complete just before it was to be undone
		a.finish(t)
		a.undone = slices.Delete(a.undone, i, i+1)
	case whole:
		a.finish(t)
		delete(a.incoming, t.From)
		a.env.do(member.Send{To: in.sender, Data: ackMsg{t: t, complete: true}.encode()})
	case i >= 0:
		a.undo(in)
	default:
		a.ack(in.sender, in)
	}
}

func (a *arrivals) finish(t member.Transfer) {
	a.received = append(a.received, t)
	if t.Epoch == a.env.table.Epoch {
		delete(a.expected, t.From)
	}
}

// expect lists the nodes that may send a transfer under the new epoch.
func (a *arrivals) expect(s shift) {
	t := a.env.table
	a.expected = map[strategy.Node]bool{}
	for _, n := range t.senders(a.env.self, s) {
		a.expected[n] = true
	}
	for _, r := range a.received {
		if r.Epoch == t.Epoch {
			delete(a.expected, r.From)
		}
	}
}

// complete reports whether all expected transfers under the epoch are complete.
func (a *arrivals) complete() bool { return len(a.expected) == 0 }

// abort ends the transfers of earlier epochs: it undoes those that are incomplete.
func (a *arrivals) abort() {
	for _, n := range sortedNodes(a.incoming) {
		in := a.incoming[n]
		if a.discard(in); in.issued > 0 {
			a.retire(in)
		}
	}
	a.incoming = map[strategy.Node]*arrival{}
}

// retire undoes a transfer as soon as the holder has journaled all chunks that were passed to it.
func (a *arrivals) retire(in *arrival) {
	a.undone = append(a.undone, in)
	a.undo(in)
}

func (a *arrivals) undo(in *arrival) {
	if in.taken == in.issued && !in.dropping {
		in.dropping = true
		a.env.do(member.Drop{Transfer: in.t})
	}
}

func (a *arrivals) findUndone(t member.Transfer) int {
	return slices.IndexFunc(a.undone, func(in *arrival) bool { return in.t == t })
}

func (a *arrivals) dropped(t member.Transfer) {
	if i := a.findUndone(t); i >= 0 {
		a.undone = slices.Delete(a.undone, i, i+1)
	}
}

func (a *arrivals) undoing() bool { return len(a.undone) > 0 }

// receivedFrom returns the complete transfers to this node since the last finalized epoch; not known while one from the
// given node is being undone or may become complete.
func (a *arrivals) receivedFrom(from strategy.Node) (all []member.Transfer, known bool) {
	return a.received, !slices.ContainsFunc(a.undone, func(in *arrival) bool { return in.t.From == from })
}

// epochFinalized drops the transfers of finalized epochs.
func (a *arrivals) epochFinalized() {
	a.received = slices.DeleteFunc(a.received, func(t member.Transfer) bool { return t.Epoch <= a.env.table.Finalized })
}
