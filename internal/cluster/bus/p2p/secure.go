package p2p

import (
	"bytes"
	"context"
	"crypto/sha256"
	"hash"
	"net"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	tptu "github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
)

// securityID is the protocol that dialers request. Peers that speak plain Noise are refused before a key exchange.
const securityID = "/kumo/noise/1"

// A security is Noise followed by the proof of membership, for TCP and for relayed connections. Only a connection of a
// member passes it; nothing else is read before.
type security struct {
	membership
	*noise.Transport
	local peer.ID
}

// newSecurity returns the security of the peer with a key: of the node, or of the peer by which it tests whether others
// can be reached.
func (m membership) newSecurity(id protocol.ID, key crypto.PrivKey, muxers []tptu.StreamMuxer) (*security, error) {
	t, err := noise.New(id, key, muxers)
	if err != nil {
		return nil, err
	}
	local, err := peer.IDFromPrivateKey(key)
	return &security{m, t, local}, err
}

// SecureInbound secures a connection that another peer has opened.
func (s *security) SecureInbound(ctx context.Context, c net.Conn, p peer.ID) (sec.SecureConn, error) {
	wire := &tap{Conn: c, read: newTranscript(2), wrote: newTranscript(1)}
	secured, err := s.Transport.SecureInbound(ctx, wire, p)
	if err != nil {
		return nil, err
	}
	return s.listener(ctx, secured, wire)
}

// SecureOutbound secures a connection that this node has opened.
func (s *security) SecureOutbound(ctx context.Context, c net.Conn, p peer.ID) (sec.SecureConn, error) {
	var by sec.SecureTransport = s.Transport
	if p == "" { // any peer: the proof verifies that it is a member
		var err error
		if by, err = s.WithSessionOptions(noise.DisablePeerIDCheck()); err != nil {
			return nil, err
		}
	}
	secured, wire, err := s.handshake(ctx, by, c, p)
	if err != nil {
		return nil, err
	}
	if hasYielded(secured) {
		return s.listener(ctx, secured, wire)
	}
	at := channelEnds{dialer: s.local, listener: secured.RemotePeer(), channel: wire.wrote.sum(wire.read)}
	return secured, s.prove(ctx, secured, func(context.Context) error { return s.dial(secured, at) })
}

func (s *security) listener(ctx context.Context, c sec.SecureConn, wire *tap) (sec.SecureConn, error) {
	at := channelEnds{dialer: c.RemotePeer(), listener: s.local, channel: wire.read.sum(wire.wrote)}
	return c, s.prove(ctx, c, func(context.Context) error { return s.accept(c, at) })
}

// A tap is a connection below Noise that records the handshake. The handshake contains the ephemeral keys of both
// sides, so it differs for each channel, and an attacker in between has a different one with each side.
type tap struct {
	net.Conn
	read, wrote *transcript
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.read.add(p[:n])
	return n, err
}

func (t *tap) Write(p []byte) (int, error) {
	n, err := t.Conn.Write(p)
	t.wrote.add(p[:n])
	return n, err
}

// A transcript is the hash of the first frames in one direction. A frame is preceded by its length in two bytes.
type transcript struct {
	hash hash.Hash
	head []byte // bytes of an incomplete length
	rest int    // missing bytes of the current frame
	left int    // missing frames, including the current one
}

func newTranscript(n int) *transcript { return &transcript{hash: sha256.New(), left: n} }

func (t *transcript) add(p []byte) {
	for len(p) > 0 && t.left > 0 {
		if t.rest == 0 {
			t.head, p = append(t.head, p[0]), p[1:]
			if len(t.head) == 2 {
				t.hash.Write(t.head)
				t.rest, t.head = int(t.head[0])<<8|int(t.head[1]), nil
				if t.rest == 0 {
					t.left--
				}
			}
			continue
		}
		n := min(t.rest, len(p))
		t.hash.Write(p[:n])
		if t.rest, p = t.rest-n, p[n:]; t.rest == 0 {
			t.left--
		}
	}
}

// sum returns the hashes of both directions, the dialer's first.
func (t *transcript) sum(answers *transcript) []byte {
	return bytes.Join([][]byte{t.hash.Sum(nil), answers.hash.Sum(nil)}, nil)
}
