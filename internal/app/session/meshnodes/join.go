package meshnodes

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"kumo/internal/app/meshnode"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus/p2p"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
)

const (
	maxContacts  = 64 // nodes of earlier processes that are asked at the start
	firstDial    = time.Second
	maxDialDelay = 30 * time.Second
	warnAfter    = 5 * time.Second   // after which people are told that no other node answers
	aloneAfter   = mesh.DefaultAlone // after which a node goes on without others, unless Config says otherwise
)

// reached is told of a node that is connected. Who knows nobody joins by way of it.
func (n *Node) reached(to strategy.Node) {
	if m := n.mesh.Load(); m != nil && m.Alone() && to.Name() != p2p.Guest {
		m.Join(asContact(n.conn.Contact(to)))
	}
}

func (n *Node) lost(to strategy.Node) {
	if m := n.mesh.Load(); m != nil {
		m.Lost(to)
	}
}

func asContact(c p2p.Contact) overlay.Contact {
	return overlay.Contact{Node: string(c.Node), Addrs: c.Addrs}
}

// knownNames are the names of nodes that were met in earlier processes.
func (n *Node) knownNames() (names []string) {
	for _, c := range n.known() {
		names = append(names, strategy.Node(c.Node).Name()+" (met before)")
	}
	return names
}

// known are nodes that were met in earlier processes.
func (n *Node) known() (all []overlay.Contact) {
	for _, c := range n.conn.Known() {
		if len(all) < maxContacts && c.Node.Name() != p2p.Guest {
			all = append(all, asContact(c))
		}
	}
	return all
}

// join finds other nodes as long as the node knows none, until ctx ends. others: there are some, or were. If none of
// them answers the node goes on alone after a while, as they may never come back; but one that is to join, and has
// never heard of the crawl, waits for them.
func (n *Node) join(ctx context.Context, m *meshnode.Node, others bool) {
	begun := time.Now()
	dialled, again := begun, firstDial
	late := false
	if len(n.Join) > 0 {
		n.dial(ctx, m)
	}
	for range wait.Every(ctx, time.Second) {
		if !m.Alone() {
			others, again = false, firstDial // those who go say so, or are found dead
			continue
		}
		if len(n.Join) > 0 && time.Since(dialled) >= again {
			n.dial(ctx, m)
			dialled, again = time.Now(), min(2*again, maxDialDelay)
		}
		if !others || !m.Alone() {
			continue
		}
		_, version := m.Crawl()
		switch waited := time.Since(begun); {
		case waited > n.Alone && (version > 0 || len(n.Join) == 0):
			n.Log.Warn("none of the other nodes answers: this one goes on alone until one does")
			m.Join()
			m.Join(n.known()...) // which are asked again and again
			others = false
		case waited > warnAfter && !late:
			n.Log.Warn("no other node answers yet", "asked", strings.Join(append(n.knownNames(), n.Join...), ", "))
			late = true
		}
	}
}

// dial connects nodes at the addresses that a person gave, and joins by way of them.
func (n *Node) dial(ctx context.Context, m *meshnode.Node) {
	all, err := n.conn.Dial(ctx, n.Join...)
	if err != nil {
		level := slog.LevelDebug
		if errors.Is(err, p2p.ErrNotMember) && !n.rejected {
			n.rejected, level = true, slog.LevelWarn // it stays so, which is said once
		}
		n.Log.Log(ctx, level, "no other node is reached", "err", err)
		return
	}
	contacts := make([]overlay.Contact, len(all))
	for i, to := range all {
		contacts[i] = asContact(n.conn.Contact(to))
	}
	m.Join(contacts...)
}
