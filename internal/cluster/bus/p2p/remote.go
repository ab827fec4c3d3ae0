package p2p

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

const (
	dialTime    = 15 * time.Second
	maxLinks    = 4           // links of one node: both may have dialed, or one of them through its router
	idleTime    = time.Minute // time without a message after which a node may be disconnected in favor of another
	handOffTime = 2 * time.Second
)

// A remote is another node that is connected or has queued messages.
type remote struct {
	of      *Messenger
	node    strategy.Node
	id      peer.ID
	used    atomic.Int64 // time of the last message in either direction, in Unix nanoseconds
	limiter rateLimiter

	links []*link // the best is first; guarded by of.mu

	mu      sync.Mutex // guards the fields below; of.mu may be held
	out     queue
	writing bool // sendLoop is running
	removed bool
}

// addRemote adds a node. mu is held.
func (m *Messenger) addRemote(node strategy.Node, id peer.ID) *remote {
	p := &remote{of: m, node: node, id: id,
		limiter: rateLimiter{messages: float64(m.cfg.Limits.Messages), bytes: float64(m.cfg.Limits.Bytes)},
		out:     queue{maxBytes: m.cfg.Limits.Queue, shared: &m.shared}}
	m.peers[node] = p
	return p
}

// forget removes a remote without links and messages.
func (m *Messenger) forget(p *remote) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.links) == 0 && !p.writing && !p.removed {
		p.removed = true
		delete(m.peers, p.node)
	}
}

// link returns the best link to the node; nil if there is none.
func (p *remote) link() *link {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if len(p.links) == 0 {
		return nil
	}
	return p.links[0]
}

// connected returns the connected nodes.
func (m *Messenger) connected() (all []*remote) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.peers {
		if len(p.links) > 0 {
			all = append(all, p)
		}
	}
	return all
}

func (m *Messenger) attach(node strategy.Node, l *link) (*remote, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.work.isClosed() {
		return nil, bus.ErrClosed
	}
	p := m.peers[node]
	if p == nil {
		p = m.addRemote(node, l.stream.Conn().RemotePeer())
	}
	if len(p.links) == 0 && !m.makeRoom() {
		return p, errFull
	}
	if len(p.links) == maxLinks {
		return p, errFull
	}
	p.used.Store(time.Now().UnixNano())
	p.links = append(p.links, l)
	slices.SortStableFunc(p.links, func(a, b *link) int { return cmp.Compare(a.rank(), b.rank()) })
	if len(p.links) == 1 {
		m.resolveAwaited(p)
		m.notices.add(node, true)
	}
	if !l.relayed {
		for _, old := range p.links {
			if old.relayed { // by then both ends have the direct link
				time.AfterFunc(handOffTime, func() { old.closeUnused(network.ConnSupplanted) })
			}
		}
	}
	return p, nil
}

var errFull = errors.New("too many connected nodes")

// makeRoom reports whether one more node may be connected. If necessary, it disconnects the least recently used one. mu
// is held.
func (m *Messenger) makeRoom() bool {
	n, oldest := 0, (*remote)(nil)
	for _, p := range m.peers {
		if len(p.links) == 0 {
			continue
		}
		n++
		if oldest == nil || p.used.Load() < oldest.used.Load() {
			oldest = p
		}
	}
	if n < m.cfg.Limits.Peers {
		return true
	}
	if oldest == nil || time.Since(time.Unix(0, oldest.used.Load())) < idleTime {
		return false
	}
	m.counts.evicted.Add(1)
	for _, l := range slices.Clone(oldest.links) {
		m.work.Go(func() { l.closeUnused(network.ConnGarbageCollected) })
	}
	return true
}

// detach removes a link of a node. lost: the node may be gone.
func (m *Messenger) detach(p *remote, l *link, lost bool) {
	m.mu.Lock()
	if i := slices.Index(p.links, l); i >= 0 {
		if p.links = slices.Delete(p.links, i, i+1); len(p.links) == 0 {
			if lost && !m.work.isClosed() {
				m.notices.add(p.node, false)
			}
		}
	}
	m.mu.Unlock()
	m.forget(p)
}

func (p *remote) connect(ctx context.Context) (*link, error) {
	m := p.of
	addrs := m.book.addrs(p.id)
	if len(addrs) == 0 && len(m.host.Peerstore().Addrs(p.id)) == 0 && p.link() == nil {
		return nil, fmt.Errorf("no known address of %s", p.node)
	}
	select {
	case m.dials <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-m.dials }()
	if _, err := m.reach(ctx, p.id, addrs); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", p.node, err)
	}
	if l := p.link(); l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("connect to %s: the connection broke at once", p.node)
}

// relays returns directly connected members as candidates for relays. libp2p queries which of them relay.
func (m *Messenger) relays(ctx context.Context, most int) <-chan peer.AddrInfo {
	found := make(chan peer.AddrInfo, most)
	defer close(found)
	for _, p := range m.connected() {
		if l := p.link(); l != nil && !l.relayed && len(found) < most {
			found <- peer.AddrInfo{ID: p.id, Addrs: m.host.Peerstore().Addrs(p.id)}
		}
	}
	return found
}
