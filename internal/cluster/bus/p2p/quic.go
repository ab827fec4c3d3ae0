package p2p

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/quic-go/quic-go"
)

// maxProving is the number of peers of a QUIC listener that may be proving their membership at once.
const maxProving = 256

// A provingQUIC is QUIC with the proof of membership on the first stream of each connection. QUIC is encrypted by
// itself, so the proof cannot be part of a security transport as over TCP. libp2p gets a connection only after the
// proof.
type provingQUIC struct {
	transport.Transport
	membership
}

func (m membership) newQUIC(key crypto.PrivKey, conns *quicreuse.ConnManager, gater connmgr.ConnectionGater,
	limits network.ResourceManager) (*provingQUIC, error) {
	t, err := libp2pquic.NewTransport(key, conns, nil, gater, limits)
	return &provingQUIC{t, m}, err
}

// ListenOrder has QUIC listen before transports that may share its port.
func (t *provingQUIC) ListenOrder() int { return libp2pquic.ListenOrder }

// Dial connects a member. If both sides dial at once, to get through their routers, the connection may be the other
// side's; then the other side starts the proof.
func (t *provingQUIC) Dial(ctx context.Context, to ma.Multiaddr, p peer.ID) (transport.CapableConn, error) {
	c, err := t.Transport.Dial(ctx, to, p)
	if err != nil {
		return nil, err
	}
	side := t.proveDialer
	if both, dials, _ := network.GetSimultaneousConnect(ctx); both && !dials {
		side = t.proveListener
	}
	if err := t.prove(ctx, c, func(ctx context.Context) error { return side(ctx, c) }); err != nil {
		return nil, err
	}
	return c, nil
}

// Listen accepts connections of members.
func (t *provingQUIC) Listen(at ma.Multiaddr) (transport.Listener, error) {
	below, err := t.Transport.Listen(at)
	if err != nil {
		return nil, err
	}
	l := &provingListener{Listener: below, transport: t, proved: make(chan transport.CapableConn),
		slots: make(chan struct{}, maxProving)}
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	l.work.Go(l.run)
	return l, nil
}

func (t *provingQUIC) proveDialer(ctx context.Context, c transport.CapableConn) error {
	channel, err := channelOf(c)
	if err != nil {
		return err
	}
	s, err := c.OpenStream(ctx)
	if err != nil {
		return fmt.Errorf("start the proof of membership: %w", err)
	}
	if err := t.dial(s, channelEnds{c.LocalPeer(), c.RemotePeer(), channel}); err != nil {
		return errors.Join(err, s.Reset())
	}
	return s.Close()
}

func (t *provingQUIC) proveListener(_ context.Context, c transport.CapableConn) error {
	channel, err := channelOf(c)
	if err != nil {
		return err
	}
	s, err := c.AcceptStream()
	if err != nil {
		return fmt.Errorf("receive the proof of membership: %w", err)
	}
	if err := t.accept(s, channelEnds{c.RemotePeer(), c.LocalPeer(), channel}); err != nil {
		return errors.Join(err, s.Reset())
	}
	_ = s.Close() // fails if the dialer has closed the stream already
	return nil
}

// channelOf returns TLS's exported key material, which only the two ends of a connection have.
func channelOf(c transport.CapableConn) ([]byte, error) {
	var conn *quic.Conn
	if !c.As(&conn) {
		return nil, errors.New("not a QUIC connection")
	}
	state := conn.ConnectionState().TLS
	return state.ExportKeyingMaterial("EXPORTER-kumo-membership", nil, 32)
}

// A provingListener passes on connections whose peers have proved their membership. Proofs run concurrently.
type provingListener struct {
	transport.Listener
	transport *provingQUIC
	proved    chan transport.CapableConn
	slots     chan struct{}
	ctx       context.Context
	stop      context.CancelCauseFunc
	work      sync.WaitGroup
}

func (l *provingListener) run() {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			l.stop(err)
			return
		}
		select {
		case l.slots <- struct{}{}:
			l.work.Go(func() { l.proveConn(c) })
		default:
			l.transport.refuse(errors.New("too many peers are proving their membership"))
			_ = c.Close()
		}
	}
}

func (l *provingListener) proveConn(c transport.CapableConn) {
	err := l.transport.prove(l.ctx, c, func(ctx context.Context) error { return l.transport.proveListener(ctx, c) })
	<-l.slots
	if err != nil {
		return
	}
	select {
	case l.proved <- c:
	case <-l.ctx.Done():
		_ = c.Close()
	case <-time.After(proofTime):
		_ = c.Close()
	}
}

// Accept returns the next member's connection.
func (l *provingListener) Accept() (transport.CapableConn, error) {
	select {
	case c := <-l.proved:
		return c, nil
	case <-l.ctx.Done():
		return nil, context.Cause(l.ctx)
	}
}

// Close closes the listener, and ends pending proofs.
func (l *provingListener) Close() error {
	err := l.Listener.Close()
	l.stop(transport.ErrListenerClosed)
	l.work.Wait()
	return err
}
