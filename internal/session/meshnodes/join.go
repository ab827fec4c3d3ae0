package meshnodes

import (
	"context"
	"time"

	"kumo/internal/bus/p2p"
	"kumo/internal/meshnode"
	"kumo/internal/overlay"
	"kumo/internal/strategy"
)

const (
	mostKnown  = 64 // nodes of earlier processes that are asked at the start
	firstDial  = time.Second
	mostDial   = 30 * time.Second
	aloneAfter = 15 * time.Second // after which a node that was in the crawl goes on without others
)

// reached is told of a node that is connected. Who knows nobody joins by way of it.
func (n *Node) reached(to strategy.Node) {
	if m := n.mesh.Load(); m != nil && m.Alone() && to.Name() != p2p.Guest {
		m.Join(asContact(n.conn.Contact(to)))
	}
}

// lost is told of a node whose connection broke.
func (n *Node) lost(to strategy.Node) {
	if m := n.mesh.Load(); m != nil {
		m.Lost(to)
	}
}

func asContact(c p2p.Contact) overlay.Contact {
	return overlay.Contact{Node: string(c.Node), Addrs: c.Addrs}
}

// known are nodes that were met in earlier processes.
func (n *Node) known() (all []overlay.Contact) {
	for _, c := range n.conn.Known() {
		if len(all) < mostKnown && c.Node.Name() != p2p.Guest {
			all = append(all, asContact(c))
		}
	}
	return all
}

// join finds other nodes as long as the node knows none, until ctx ends. One that others know of, and none of them
// answers, waits; but if it has been in the crawl, it goes on alone after a while: they may never come back.
func (n *Node) join(ctx context.Context, m *meshnode.Node, others bool) {
	begun, wait, said := time.Now(), firstDial, false
	for ctx.Err() == nil {
		if !m.Alone() {
			others, wait = true, firstDial
		} else if len(n.Join) > 0 {
			if n.dial(ctx, m) {
				wait = firstDial
			} else {
				wait = min(2*wait, mostDial)
			}
		}
		if _, version := m.Crawl(); others && !said && m.Alone() && version > 0 && time.Since(begun) > aloneAfter {
			said = true
			n.Log.Warn("none of the other nodes answers: this one goes on alone until one does")
			m.Join()
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// dial connects nodes at the addresses that a person gave, and joins by way of them.
func (n *Node) dial(ctx context.Context, m *meshnode.Node) (reached bool) {
	all, err := n.conn.Dial(ctx, n.Join...)
	if err != nil {
		n.Log.Debug("no other node is reached", "err", err)
		return false
	}
	contacts := make([]overlay.Contact, len(all))
	for i, to := range all {
		contacts[i] = asContact(n.conn.Contact(to))
	}
	m.Join(contacts...)
	return true
}
