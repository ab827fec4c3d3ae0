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

// Nodes dial from the port on which they listen, so that routers show them by one address. If two nodes dial each other
// at the same moment, TCP makes one connection of it (simultaneous open, RFC 9293, 3.5), and both ends are dialers.
// Each notices by the other's first handshake message, which is shorter than any answer. The node with the smaller ID
// then yields: it continues as the listener.

// firstSize is the size of the first message of Noise's XX handshake, an ephemeral key.
const firstSize = 32

var errYield = errors.New("the peer has dialed, too")

// A resumedConn is a connection whose first bytes were read before.
type resumedConn struct {
	net.Conn
	pending []byte // bytes read before
}

func (r *resumedConn) Read(p []byte) (int, error) {
	if len(r.pending) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.pending)
	r.pending = r.pending[n:]
	return n, nil
}

// A dialedConn is a connection for the dialer's handshake.
type dialedConn struct {
	resumedConn
	yields  bool // on a simultaneous open
	decided bool // it is known whether there was one
	yielded atomic.Bool
}

// Read returns the peer's bytes as a listener. On a simultaneous open it skips the peer's first message, or, if this
// node yields, keeps it as pending and returns errYield.
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

// Close does not close a connection on which the node has yielded: a second handshake follows.
func (d *dialedConn) Close() error {
	if d.yielded.Load() {
		return nil
	}
	return d.Conn.Close()
}

// handshake secures a connection that this node has dialed, and returns the tap of the handshake. If the node has
// yielded, it is the listener's tap, and the connection is a yieldedConn.
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

// A yieldedConn is a connection that this node has dialed, and on which it is the listener.
type yieldedConn struct{ sec.SecureConn }

func hasYielded(c net.Conn) bool {
	_, has := c.(yieldedConn)
	return has
}

// A muxer is yamux. The listener's streams have even numbers and the dialer's odd ones.
type muxer struct{ *yamux.Transport }

// NewConn implements libp2p's interface.
func (m muxer) NewConn(c net.Conn, listens bool, scope network.PeerScope) (network.MuxedConn, error) {
	return m.Transport.NewConn(c, listens || hasYielded(c), scope)
}
