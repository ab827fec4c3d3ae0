package quorum

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// How single hosts move from many members to many others under one epoch:
//
//	member   writes a batch of moves, as the record moves/NODE
//	member   names the batch, by the record's revision, in its lease
//	guard    once the epoch is settled, begins another that names all batches which leases name
//	members  hand over; who has a batch says in its lease that it was taken when it says that it is done with the epoch
//	guard    settles the epoch
//	member   names the batch no more, and writes the next one
//
// Nobody takes back a batch that its lease has named, also not the next process of the same identity, which finds it
// named there. So a record stays as it is from before a lease names it until the epoch that takes it is settled: who
// reads it late, because its writer has died, reads what the writer has handed over.

// MovesPrefix is what the keys of records begin with that say which hosts move.
const MovesPrefix = "moves/"

func movesKey(n strategy.Node) string { return MovesPrefix + string(n) }

// A Proposal is what a node's lease says of its batch of moves.
type Proposal struct {
	Batch uint64          // revision of the record; 0: there is none
	Taken uint64          // the epoch that moves its hosts; 0: the node does not know of any
	To    []strategy.Node // to whom they go, sorted; only while it waits
}

func (p *Proposal) waits() bool { return p.Batch != 0 && p.Taken == 0 }

// The most that a batch has, and that an epoch takes: pairs of nodes between which hosts move, unless one batch has
// more.
const (
	maxMoves     = 4096
	maxMoveBytes = 256 << 10
	maxTargets   = 256
	maxPairs     = 1 << 14
)

// moving is what a node does about the moves of its own hosts.
type moving struct {
	wants    map[string]strategy.Node // hosts that are to move and are in no batch yet
	order    []string                 // the same, and some that are not wanted any more, in the order in which they came
	since    time.Time                // when the first of the last ones did
	offer    Proposal                 // the batch of the record, as the lease names it
	writes   map[string]strategy.Node // what is being written; nil: nothing is
	busy     bool                     // writing, or removing the record
	revision uint64                   // of the record; 0: there is none
	seen     uint64                   // all that was heard of it up to this revision
	tryAt    time.Time
}

// A record is a batch as it was read.
type record struct {
	revision uint64
	moves    map[string]strategy.Node // is not changed
}

// handOver notes that hosts are to move to another node. One that has begun to move there may have come again since it
// was read: it moves once more.
func (m *Member) handOver(e member.HandOver) {
	o := &m.moving
	if len(o.wants) == 0 {
		o.wants, o.order, o.since = map[string]strategy.Node{}, nil, m.now
	}
	for _, h := range e.Hosts {
		if o.writes[h] == e.To || o.offer.waits() && m.records[m.cfg.Self].moves[h] == e.To {
			continue // it is about to
		}
		if _, wanted := o.wants[h]; !wanted {
			o.order = append(o.order, h)
		}
		o.wants[h] = e.To
	}
}

// forsake drops moves to nodes that are none any more.
func (m *Member) forsake() {
	maps.DeleteFunc(m.moving.wants, func(_ string, to strategy.Node) bool { return !m.table.has(to) })
}

// offer writes the moves that this node wants once nothing else moves: then it knows of most. The record of what has
// moved is removed when nothing more is wanted for a while.
func (m *Member) offer() {
	o := &m.moving
	if m.cfg.Place != nil || o.busy || !m.movesOver() || !m.table.has(m.cfg.Self) {
		return
	}
	if o.tryAt.After(m.now) || !m.lease.until.After(m.now) {
		return
	}
	var value []byte
	switch {
	case len(o.wants) > 0 && m.table.settled() && !m.offersAt().After(m.now):
		o.writes = m.choose()
		value = encodeMoves(o.writes)
	case len(o.wants) == 0 && o.revision != 0 && m.now.Sub(o.since) > m.cfg.Timing.TTL:
	default:
		return
	}
	o.busy = true
	m.do(member.Write{Key: movesKey(m.cfg.Self), Value: value, Revision: o.revision})
}

// offersAt is when moves are written of which the first was heard of lately: those that come with it are waited for.
func (m *Member) offersAt() time.Time { return m.moving.since.Add(m.cfg.Timing.Beat / 32) }

// choose takes moves for a batch, in the order in which they came.
func (m *Member) choose() map[string]strategy.Node {
	o := &m.moving
	batch, targets, size := map[string]strategy.Node{}, map[strategy.Node]bool{}, 0
	o.order = slices.DeleteFunc(o.order, func(h string) bool {
		to, wanted := o.wants[h]
		if !wanted {
			return true
		}
		if len(batch) >= maxMoves || size+len(h) > maxMoveBytes || !targets[to] && len(targets) >= maxTargets {
			return false
		}
		batch[h], targets[to] = to, true
		size += len(h) + 2
		delete(o.wants, h)
		return true
	})
	return batch
}

// wroteMoves names a batch that is there.
func (m *Member) wroteMoves(w member.Wrote) {
	o := &m.moving
	writes := o.writes
	o.busy, o.writes = false, nil
	if w.Err != nil { // the watch tells what there is
		o.tryAt = m.now.Add(m.cfg.Timing.Beat / 4)
		for h, to := range writes {
			if _, wanted := o.wants[h]; !wanted {
				m.handOver(member.HandOver{Hosts: []string{h}, To: to})
			}
		}
		return
	}
	if writes == nil {
		o.seen, o.revision, o.offer = max(o.seen, o.revision), 0, Proposal{}
		return
	}
	o.seen, o.revision = w.Revision, w.Revision
	o.offer = Proposal{Batch: w.Revision, To: targets(writes)}
	m.records[m.cfg.Self] = record{w.Revision, writes}
}

func targets(moves map[string]strategy.Node) []strategy.Node {
	to := map[strategy.Node]bool{}
	for _, n := range moves {
		to[n] = true
	}
	return sortedNodes(to)
}

// movesEntry is told of a record by the watch.
func (m *Member) movesEntry(n strategy.Node, e member.Entry) {
	if o := &m.moving; n == m.cfg.Self && e.Revision > o.seen {
		o.seen, o.revision = e.Revision, e.Revision
		if e.Value == nil {
			o.revision = 0
		}
	}
	if e.Value == nil || e.Revision <= m.records[n].revision {
		return
	}
	moves, err := parseMoves(e.Value)
	if err != nil {
		m.fail("the moves of %s in the registry are none that this version of kumo reads", n.Name())
		return
	}
	m.records[n] = record{e.Revision, moves}
}

// movesTaken notes that the table has this node's batch.
func (m *Member) movesTaken() {
	o := &m.moving
	if b := m.table.moves(m.cfg.Self); b != nil && b.Batch == o.offer.Batch {
		o.offer.Taken, o.offer.To = m.table.Settled+1, nil
	}
}

// movesOver reports whether the record is this node's to change: it never had one, or all of the last has moved.
func (m *Member) movesOver() bool {
	o := &m.moving.offer
	return o.Batch == 0 || o.Taken != 0 && o.Taken <= m.table.Settled
}

// movesNothing reports whether no host of this node's moves, or is to.
func (m *Member) movesNothing() bool {
	return len(m.moving.wants) == 0 && !m.moving.busy && m.movesOver()
}

// movesUnder are the hosts that move from a node under an epoch, as far as this one knows.
func (m *Member) movesUnder(epoch uint64, from strategy.Node) map[string]strategy.Node {
	b, r := m.table.moves(from), m.records[from]
	if b == nil || epoch <= m.table.Settled || b.Batch != r.revision {
		return nil
	}
	return r.moves
}

// knowsMoves reports whether this node knows which hosts of another move.
func (m *Member) knowsMoves(from strategy.Node) bool {
	b := m.table.moves(from)
	return b == nil || b.Batch == m.records[from].revision
}

// offered notes, for a guard, whether a member's lease names a batch that waits.
func (m *Member) offered(n strategy.Node, p *Proposal) {
	if !p.waits() {
		delete(m.offers, n)
		return
	}
	if len(m.offers) == 0 {
		m.gather()
	}
	m.offers[n] = *p
}

// gather puts off what a guard does about moves: more are about to be named, and who joins or leaves comes first.
func (m *Member) gather() { m.movesAt = m.now.Add(m.cfg.Timing.Beat/8 + m.rank()) }

// withMoves is the table with the batches that wait, the oldest first, under a new epoch; nil if there are none. Of a
// member that is not known to be done with this epoch it is not known either whether its batch waits.
func (m *Member) withMoves() *Table {
	var all []Moves
	for n, p := range m.offers {
		if m.table.has(n) && m.doneOf(n) >= m.table.Epoch {
			all = append(all, Moves{From: n, Batch: p.Batch, To: p.To})
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b Moves) int { return cmp.Compare(a.Batch, b.Batch) })
	pairs := 0
	for i := range all {
		if pairs += len(all[i].To); i > 0 && pairs > maxPairs {
			all = all[:i]
			break
		}
	}
	t := m.table.clone()
	t.Epoch++
	t.Moves = all
	return t
}

// doneOf is the epoch with which a member is done, as a guard knows.
func (m *Member) doneOf(n strategy.Node) uint64 {
	if n == m.cfg.Self {
		return m.lease.said.Done
	}
	if p := m.peers[n]; p != nil && !p.lease.Revoked {
		return p.lease.Done
	}
	return 0
}

// A record of moves is a byte that says which version, then for each node to which hosts go its name, their number and
// their names.
const movesVersion = 1

var errMoves = errors.New("a record of moves that cannot be read")

func encodeMoves(moves map[string]strategy.Node) []byte {
	by := map[strategy.Node][]string{}
	for h, to := range moves {
		by[to] = append(by[to], h)
	}
	w := varint.Writer{movesVersion}
	for _, to := range sortedNodes(by) {
		hosts := by[to]
		slices.Sort(hosts)
		w.String(string(to))
		w.Uint(uint64(len(hosts)))
		for _, h := range hosts {
			w.String(h)
		}
	}
	return w
}

func parseMoves(value []byte) (map[string]strategy.Node, error) {
	r := varint.Reader{Rest: value}
	if r.Byte() != movesVersion {
		return nil, errMoves
	}
	moves := map[string]strategy.Node{}
	for len(r.Rest) > 0 {
		to := strategy.Node(r.String())
		for left := r.Uint(); left > 0 && !r.Bad; left-- {
			if h := r.String(); !r.Bad {
				moves[h] = to
			}
		}
	}
	if r.Bad {
		return nil, errMoves
	}
	return moves, nil
}
