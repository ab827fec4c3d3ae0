package quorum

import (
	"errors"
	"maps"
	"slices"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// moveRecords guards the batches of moves that this node has read from the registry: its own, and those of the nodes
// that it has taken over.
//
// Invariants: a record counts under an epoch only if its revision is the one in the table. After the end of an epoch,
// only the node's own record is retained.
type moveRecords struct {
	env  *env
	read map[strategy.Node]record
}

// A record is a batch as read from the registry or written there.
type record struct {
	revision uint64
	moves    map[string]strategy.Node // immutable
}

// entry applies a record as the watch has read it.
func (r *moveRecords) entry(n strategy.Node, e member.Entry) error {
	if e.Value == nil || e.Revision <= r.read[n].revision {
		return nil
	}
	moves, err := parseMoves(e.Value)
	if err == nil {
		r.read[n] = record{e.Revision, moves}
	}
	return err
}

func (r *moveRecords) setOwn(own record) { r.read[r.env.self] = own }

func (r *moveRecords) own() map[string]strategy.Node { return r.read[r.env.self].moves }

// under returns the hosts that move from a node under an epoch, as far as known.
func (r *moveRecords) under(epoch uint64, from strategy.Node) map[string]strategy.Node {
	t := r.env.table
	b, read := t.moves(from), r.read[from]
	if b == nil || epoch <= t.Finalized || b.Batch != read.revision {
		return nil
	}
	return read.moves
}

// known reports whether the hosts of a node that move are known.
func (r *moveRecords) known(from strategy.Node) bool {
	b := r.env.table.moves(from)
	return b == nil || b.Batch == r.read[from].revision
}

// epochFinalized drops the records of other nodes.
func (r *moveRecords) epochFinalized() {
	maps.DeleteFunc(r.read, func(n strategy.Node, _ record) bool { return n != r.env.self })
}

// A record's value is a version byte, then for each target node its name, the number of its hosts, and their names.
const movesVersion = 1

var errMoves = errors.New("invalid record of moves")

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
