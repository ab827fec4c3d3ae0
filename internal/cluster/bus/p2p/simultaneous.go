package p2p

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
)

// Nodes dial from the port on which they listen, so that routers show them by one address. Where two dial each other at
// the same moment TCP makes one connection of it (simultaneous open, RFC 9293, 3.5), and both ends are diallers. Each
// sees that by the other's first handshake message, which is shorter than any answer. The one with the smaller id then
// yields: it goes on as the listener.

// firstSize is the size of the message with which Noise's XX handshake begins, an ephemeral key.
const firstSize = 32

var errYield = errors.New("the other side has dialled, too")

// A resumed is a connection of which something was read before.
type resumedConn struct {
	net.Conn
	pending []byte // of what was read
}

func (r *resumedConn) Read(p []byte) (int, error) {
	if len(r.pending) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.pending)
	r.pending = r.pending[n:]
	return n, nil
}

// A dialled is a connection as its dialler's handshake is to see it.
type dialedConn struct {
	resumedConn
	yields  bool // if the other side has dialled, too
	decided bool // it is known whether it has
	yielded atomic.Bool
}

// Read gives what the other side says as the listener. The first message of one that has dialled, too, is left out, or
// is pending, with errYield.
func (d *dialedConn) Read(p []byte) (int, error) {
	if !d.decided {
		d.decided = true
		if err := d.decide(); err != nil {
			return 0, err
		}
	}
	return d.resumedConn.Read(p)
}

func (d *dialedConn) decide() error {
	first := make([]byte, 2, 2+firstSize)
	if _, err := io.ReadFull(d.Conn, first); err != nil {
		return err
	}
	if size := int(first[0])<<8 | int(first[1]); size != firstSize {
		d.pending = first
		return nil
	}
	first = first[:cap(first)]
	if _, err := io.ReadFull(d.Conn, first[2:]); err != nil || !d.yields {
		return err
	}
	d.pending = first
	d.yielded.Store(true)
	return errYield
}

// Close leaves a connection open on which the node has yielded: a second handshake follows.
func (d *dialedConn) Close() error {
	if d.yielded.Load() {
		return nil
	}
	return d.Conn.Close()
}

// handshake secures a connection that this node has dialled, and tells what the tap has noted of it. Where the node has
// yielded, that is a listener's, and the connection a yieldedConn.
func (s *security) handshake(ctx context.Context, by sec.SecureTransport, c net.Conn, p peer.ID) (
	sec.SecureConn, *tap, error) {
	d := &dialedConn{resumedConn: resumedConn{Conn: c}, yields: s.local < p}
	wire := &tap{Conn: d, read: newTranscript(1), wrote: newTranscript(2)}
	secured, err := by.SecureOutbound(ctx, wire, p)
	if !errors.Is(err, errYield) {
		return secured, wire, err
	}
	wire = &tap{Conn: &d.resumedConn, read: newTranscript(2), wrote: newTranscript(1)}
	if secured, err = s.Transport.SecureInbound(ctx, wire, p); err != nil {
		return nil, nil, err
	}
	return yieldedConn{secured}, wire, nil
}

// A yieldedConn is one that this node has dialled, and listens on.
type yieldedConn struct{ sec.SecureConn }

func hasYielded(c net.Conn) bool {
	_, has := c.(yieldedConn)
	return has
}

// A muxer is yamux, where the listener's streams have even numbers and the dialler's odd ones.
type muxer struct{ *yamux.Transport }

// NewConn is part of the interface of libp2p.
func (m muxer) NewConn(c net.Conn, listens bool, scope network.PeerScope) (network.MuxedConn, error) {
	return m.Transport.NewConn(c, listens || hasYielded(c), scope)
}
