package quorum

import (
	"maps"
	"slices"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// How single hosts move from many members to many others under one epoch:
//
//	member   writes a batch of moves, as the record moves/NODE
//	member   names the batch, by the record's revision, in its lease
//	guard    once the epoch has ended, starts another that names all batches which leases name
//	members  transfer; in the lease that reports the epoch finished, a batch's owner reports it taken
//	guard    ends the epoch
//	member   no longer names the batch, and writes the next one
//
// A batch that a lease has named is never withdrawn, not even by the next process of the same identity, which finds it
// named there. So a record stays unchanged from before a lease names it until the end of the epoch that takes it: a
// takeover node that reads it late reads what the dead node has transferred.

// MovesPrefix is the prefix of the registry keys of records of moves.
const MovesPrefix = "moves/"

func movesKey(n strategy.Node) string { return MovesPrefix + string(n) }

// A Proposal is the part of a node's lease about its batch of moves.
type Proposal struct {
	Batch uint64          // revision of the record; 0: none
	Taken uint64          // the epoch that moves its hosts; 0: the node does not know of any
	To    []strategy.Node // targets of the moves, sorted; only until the batch is taken
}

func (p *Proposal) waits() bool { return p.Batch != 0 && p.Taken == 0 }

// Limits of a batch.
const (
	maxMoves     = 4096
	maxMoveBytes = 256 << 10
	maxTargets   = 256
)

// ownMoves guards the moves of this node's own hosts, from the request for them until the end of the epoch that has
// moved them. It writes the registry entry moves/SELF.
//
// Invariants: at most one batch is offered at a time. Its record is not changed before the end of the epoch that takes
// it. A requested move is in requested, in the batch being written, or in the offered one.
type ownMoves struct {
	env     *env
	records interface { // this node's record, as written or read last
		own() map[string]strategy.Node
		setOwn(record)
	}

	requested        map[string]strategy.Node // requested hosts that are in no batch yet
	order            []string                 // the same in the order of the requests, and some that were withdrawn
	since            time.Time                // time of the oldest request since requested was empty
	offer            Proposal                 // the batch of the record, as the lease names it
	writing          map[string]strategy.Node // the batch being written; nil: none
	busy             bool                     // the record is being written or deleted
	revision         uint64                   // of the record; 0: none
	reportedRevision uint64                   // last revision of the record, or of its deletion, that was reported
	tryAt            time.Time
}

// request queues moves of hosts to another node. A host in a taken batch may have come back since it was read: it moves
// again.
func (o *ownMoves) request(hosts []string, to strategy.Node) {
	if len(o.requested) == 0 {
		o.requested, o.order, o.since = map[string]strategy.Node{}, nil, o.env.now
	}
	for _, h := range hosts {
		if o.writing[h] == to || o.offer.waits() && o.records.own()[h] == to {
			continue // a batch that is not taken yet contains this move
		}
		if _, wanted := o.requested[h]; !wanted {
			o.order = append(o.order, h)
		}
		o.requested[h] = to
	}
}

// newEpoch drops moves to nodes that are no longer members, and applies that the epoch takes this node's batch.
func (o *ownMoves) newEpoch() {
	t := o.env.table
	maps.DeleteFunc(o.requested, func(_ string, to strategy.Node) bool { return !t.has(to) })
	if b := t.moves(o.env.self); b != nil && b.Batch == o.offer.Batch {
		o.offer.Taken, o.offer.To = t.Finalized+1, nil
	}
}

// write writes the next batch once no other hosts move: then it contains the most. It deletes the record if no moves
// were requested for a while.
func (o *ownMoves) write() {
	t, now := o.env.table, o.env.now
	if o.busy || o.tryAt.After(now) || !o.changeable() || !t.has(o.env.self) {
		return
	}
	var value []byte
	switch {
	case len(o.requested) > 0 && t.isFinalized() && !o.writeAt().After(now):
		o.writing = o.choose()
		value = encodeMoves(o.writing)
	case len(o.requested) == 0 && o.revision != 0 && now.Sub(o.since) > o.env.timing.TTL:
	default:
		return
	}
	o.busy = true
	o.env.do(member.Write{Key: movesKey(o.env.self), Value: value, Revision: o.revision})
}

// writeAt returns when the requests may be written: shortly after the oldest, so that more can join the batch.
func (o *ownMoves) writeAt() time.Time { return o.since.Add(o.env.timing.Beat / 32) }

// due returns when delayed requests may be written; zero if there are none.
func (o *ownMoves) due() time.Time { return o.env.later(o.writeAt(), len(o.requested) > 0) }

// choose takes the oldest requests for a batch.
func (o *ownMoves) choose() map[string]strategy.Node {
	batch, targets, size := map[string]strategy.Node{}, map[strategy.Node]bool{}, 0
	o.order = slices.DeleteFunc(o.order, func(h string) bool {
		to, wanted := o.requested[h]
		if !wanted {
			return true
		}
		if len(batch) >= maxMoves || size+len(h) > maxMoveBytes || !targets[to] && len(targets) >= maxTargets {
			return false
		}
		batch[h], targets[to] = to, true
		size += len(h) + 2
		delete(o.requested, h)
		return true
	})
	return batch
}

// wrote applies the result of a write: it offers a batch that is stored, and requests the moves of a failed one again.
func (o *ownMoves) wrote(w member.Wrote) {
	writes := o.writing
	o.busy, o.writing = false, nil
	switch {
	case w.Err != nil: // the watch reports the current record
		o.tryAt = o.env.now.Add(o.env.timing.Beat / 4)
		for h, to := range writes {
			if _, wanted := o.requested[h]; !wanted {
				o.request([]string{h}, to)
			}
		}
	case writes == nil:
		o.reportedRevision, o.revision, o.offer = max(o.reportedRevision, o.revision), 0, Proposal{}
	default:
		o.reportedRevision, o.revision = w.Revision, w.Revision
		o.offer = Proposal{Batch: w.Revision, To: targets(writes)}
		o.records.setOwn(record{w.Revision, writes})
	}
}

func targets(moves map[string]strategy.Node) []strategy.Node {
	return slices.Compact(slices.Sorted(maps.Values(moves)))
}

// entry applies the revision of this node's record, as the watch has read it.
func (o *ownMoves) entry(e member.Entry) {
	if e.Revision <= o.reportedRevision {
		return
	}
	o.reportedRevision, o.revision = e.Revision, e.Revision
	if e.Value == nil {
		o.revision = 0
	}
}

// delete removes the record of a node that has left.
func (o *ownMoves) delete() {
	if o.revision != 0 {
		o.env.do(member.Write{Key: movesKey(o.env.self), Revision: o.revision})
	}
}

// changeable reports whether this node may change its record: the epoch that took the last batch has ended.
func (o *ownMoves) changeable() bool {
	return o.offer.Batch == 0 || o.offer.Taken != 0 && o.offer.Taken <= o.env.table.Finalized
}

// idle reports whether no host of this node moves or will move.
func (o *ownMoves) idle() bool { return len(o.requested) == 0 && !o.busy && o.changeable() }
