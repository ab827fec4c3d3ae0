package p2p

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	msmux "github.com/multiformats/go-multistream"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// A Contact is a node and its addresses: multiaddrs without the peer ID, which the node's identity contains. For a node
// that others cannot dial, they name the nodes that relay for it.
type Contact struct {
	Node  strategy.Node
	Addrs []string
}

// Dial connects nodes at addresses that a user gave: "host:port", or multiaddrs with or without the peer ID; those
// without must be TCP. It dials all addresses at once and returns the nodes that it has reached, or an error if there
// are none.
func (m *Messenger) Dial(ctx context.Context, addrs ...string) ([]strategy.Node, error) {
	if m.work.isClosed() {
		return nil, bus.ErrClosed
	}
	if len(addrs) == 0 {
		return nil, errors.New("no address to dial")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	nodes, errs := make([]strategy.Node, len(addrs)), make([]error, len(addrs))
	var all sync.WaitGroup
	for i, text := range addrs {
		all.Go(func() {
			if nodes[i], errs[i] = m.dialOne(ctx, text); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", text, errs[i])
			}
		})
	}
	all.Wait()
	var reached []strategy.Node
	for i, node := range nodes {
		if errs[i] == nil {
			reached = append(reached, node)
		}
	}
	if len(reached) > 0 {
		return reached, nil
	}
	return nil, errors.Join(errs...)
}

func (m *Messenger) dialOne(ctx context.Context, text string) (strategy.Node, error) {
	addr, err := dialAddr(text)
	if err != nil {
		return "", err
	}
	at, id := peer.SplitAddr(addr)
	if id == "" {
		if id, err = m.identify(ctx, at); err != nil {
			return "", userError(err)
		}
	}
	if id == m.id {
		return "", errors.New("this is the address of this node")
	}
	return m.dialPeer(ctx, id, at)
}

// dialPeer connects a peer whose node is not known yet.
func (m *Messenger) dialPeer(ctx context.Context, id peer.ID, at ...ma.Multiaddr) (strategy.Node, error) {
	if s, is := m.host.Network().(*swarm.Swarm); is {
		s.Backoff().Clear(id) // dial now, whatever failed before
	}
	node, err := m.reach(ctx, id, at)
	if err == nil {
		m.book.put(node, id, at, true)
	}
	return node, err
}

func (m *Messenger) reach(ctx context.Context, id peer.ID, at []ma.Multiaddr) (strategy.Node, error) {
	a := m.await(id)
	defer m.stopAwaiting(a)
	through := network.WithAllowLimitedConn(ctx, "messages")
	if err := m.host.Connect(through, peer.AddrInfo{ID: id, Addrs: at}); err != nil {
		return "", userError(err)
	}
	a.dialed.Store(true)
	if len(m.host.Network().ConnsToPeer(id)) == 0 {
		m.failAwaited(id)
	}
	select {
	case node, is := <-a.node:
		if !is {
			return "", errors.New("the peer closed the connection: it has no room for this node, or has banned it")
		}
		return node, nil
	case <-ctx.Done():
		return "", errors.New("no answer")
	}
}

// A pendingDial waits for a dialed peer to send its node's name.
type pendingDial struct {
	id     peer.ID
	dialed atomic.Bool
	node   chan strategy.Node // has room for one element; closed when the connection has ended
}

func (m *Messenger) await(id peer.ID) *pendingDial {
	a := &pendingDial{id: id, node: make(chan strategy.Node, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.peers {
		if p.id == id && len(p.links) > 0 {
			a.node <- p.node
			return a
		}
	}
	m.pendingDials[a] = true
	return a
}

func (m *Messenger) stopAwaiting(a *pendingDial) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pendingDials, a)
}

// failAwaited ends the pending dials of a peer: it has no connection left.
func (m *Messenger) failAwaited(id peer.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for a := range m.pendingDials {
		if a.id == id && a.dialed.Load() {
			close(a.node)
			delete(m.pendingDials, a)
		}
	}
}

// resolveAwaited passes a node to the pending dials of its peer. mu is held.
func (m *Messenger) resolveAwaited(p *remote) {
	for a := range m.pendingDials {
		if a.id == p.id {
			a.node <- p.node
			delete(m.pendingDials, a)
		}
	}
}

func (m *Messenger) identify(ctx context.Context, at ma.Multiaddr) (peer.ID, error) {
	network, address, err := manet.DialArgs(at)
	if err != nil || !isTCP(at) {
		return "", fmt.Errorf("an address without /p2p/ID at its end must be a TCP address")
	}
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if !m.gater.mayDial(c) {
		return "", errors.New("without a secret only loopback addresses can be dialed")
	}
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if _, err := msmux.SelectOneOf([]protocol.ID{securityID}, c); err != nil {
		return "", err
	}
	key := m.host.Peerstore().PrivKey(m.id)
	s, err := m.membership.newSecurity(securityID, key, nil)
	if err != nil {
		return "", err
	}
	secured, err := s.SecureOutbound(ctx, c, "")
	if err != nil {
		return "", err
	}
	return secured.RemotePeer(), nil
}

func isTCP(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_TCP)
	return err == nil && !isRelayed(a)
}

// userError returns the parts of a libp2p error that a user can act on.
func userError(err error) error {
	var none msmux.ErrNotSupported[protocol.ID]
	var failed *swarm.DialError
	switch {
	case errors.Is(err, ErrNotMember):
		return ErrNotMember
	case errors.As(err, &none):
		return fmt.Errorf("%w: %w", ErrNotMember, err)
	case errors.As(err, &failed) && len(failed.DialErrors) > 0:
		var all []error
		for _, e := range failed.DialErrors {
			all = append(all, fmt.Errorf("%s: %w", e.Address, e.Cause))
		}
		return errors.Join(all...)
	}
	return err
}
