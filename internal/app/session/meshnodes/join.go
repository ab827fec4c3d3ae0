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
	maxContacts  = 64 // contacts of earlier processes that are tried at the start
	firstDial    = time.Second
	maxDialDelay = 30 * time.Second
	warnAfter    = 5 * time.Second   // until the user is warned that no other node answers
	aloneAfter   = mesh.DefaultAlone // until a node continues without others; default of Config.Alone
)

// reached is called when a node is connected. A node without any contacts joins through it.
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

// knownNames returns the names of nodes known from earlier processes.
func (n *Node) knownNames() (names []string) {
	for _, c := range n.known() {
		names = append(names, strategy.Node(c.Node).Name()+" (met before)")
	}
	return names
}

// known returns the contacts known from earlier processes.
func (n *Node) known() (all []overlay.Contact) {
	for _, c := range n.conn.Known() {
		if len(all) < maxContacts && c.Node.Name() != p2p.Guest {
			all = append(all, asContact(c))
		}
	}
	return all
}

// join looks for other nodes while the node knows none, until ctx ends. others is true if there are, or were, some. If
// none answers, the node continues alone after a while. A node that should join, and does not know the crawl's record,
// waits for them instead.
func (n *Node) join(ctx context.Context, m *meshnode.Node, others bool) {
	begun := time.Now()
	dialled, again := begun, firstDial
	late := false
	if len(n.Join) > 0 {
		n.dial(ctx, m)
	}
	for range wait.Every(ctx, time.Second) {
		if !m.Alone() {
			others, again = false, firstDial // departing nodes announce it, or are found dead
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
			n.Log.Warn("no other node answers: this one continues alone until one does")
			m.Join()
			m.Join(n.known()...) // these are retried
			others = false
		case waited > warnAfter && !late:
			n.Log.Warn("no other node answers yet", "asked", strings.Join(append(n.knownNames(), n.Join...), ", "))
			late = true
		}
	}
}

// dial connects to the addresses given by the user, and joins through them.
func (n *Node) dial(ctx context.Context, m *meshnode.Node) {
	all, err := n.conn.Dial(ctx, n.Join...)
	if err != nil {
		level := slog.LevelDebug
		if errors.Is(err, p2p.ErrNotMember) && !n.rejected {
			n.rejected, level = true, slog.LevelWarn // a permanent condition; warn once
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
