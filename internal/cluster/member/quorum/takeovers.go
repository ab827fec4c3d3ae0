package quorum

import (
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// takeovers guards the recovered state of dead nodes whose takeover node this one is: from Recover until the end of the
// epoch, or until CancelRecovery, when another node becomes the takeover node.
//
// Invariant: only after Recovered does this node know a dead node's transfers, and read its hosts.
type takeovers struct {
	env   *env
	nodes map[strategy.Node]*takeover
}

// A takeover is the state of one dead node.
type takeover struct {
	ready     bool              // the state is recovered
	released  bool              // everything is transferred
	received  []member.Transfer // complete transfers to the dead node
	forgotten []member.Transfer // complete transfers from it whose hosts it has forgotten
}

// newEpoch recovers the dead nodes whose takeover node this one becomes, and cancels recoveries for which it no longer
// is.
func (t *takeovers) newEpoch() {
	mine := map[strategy.Node]bool{}
	for _, dead := range t.env.table.Failed {
		if t.env.table.takeoverNode(dead) != t.env.self {
			continue
		}
		mine[dead] = true
		if t.nodes[dead] == nil {
			t.nodes[dead] = &takeover{}
			t.env.do(member.Recover{Node: dead})
		}
	}
	for _, dead := range sortedNodes(t.nodes) {
		if !mine[dead] {
			t.env.do(member.CancelRecovery{Node: dead})
			delete(t.nodes, dead)
		}
	}
}

func (t *takeovers) epochFinalized() { clear(t.nodes) }

func (t *takeovers) recovered(f member.Recovered) {
	if o := t.nodes[f.Node]; o != nil {
		o.ready, o.received, o.forgotten = true, f.Received, f.Forgotten
	}
}

func (t *takeovers) released(n strategy.Node) {
	if o := t.nodes[n]; o != nil {
		o.released = true
	}
}

// records returns the registry keys of the records of moves that this node needs in order to transfer for dead nodes.
func (t *takeovers) records() (keys []string) {
	for _, n := range sortedNodes(t.nodes) {
		if t.env.table.moves(n) != nil {
			keys = append(keys, movesKey(n))
		}
	}
	return keys
}
