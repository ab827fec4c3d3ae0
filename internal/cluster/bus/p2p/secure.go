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

// securityID is what diallers ask for; peers that speak plain Noise are turned away before they cost a key exchange.
const securityID = "/kumo/noise/1"

// A security is Noise and the proof of membership behind it: for TCP, and for what other members relay. A connection
// that it lets through is a member's, before anything else is read from it.
type security struct {
	membership
	*noise.Transport
	local peer.ID
}

// newSecurity is called by libp2p, for the node and for the peer by which it tries whether others can be reached.
func (m membership) newSecurity(id protocol.ID, key crypto.PrivKey, muxers []tptu.StreamMuxer) (*security, error) {
	t, err := noise.New(id, key, muxers)
	if err != nil {
		return nil, err
	}
	local, err := peer.IDFromPrivateKey(key)
	return &security{m, t, local}, err
}

// SecureInbound secures a connection that another peer has begun.
func (s *security) SecureInbound(ctx context.Context, c net.Conn, p peer.ID) (sec.SecureConn, error) {
	wire := &tap{Conn: c, read: newTranscript(2), wrote: newTranscript(1)}
	secured, err := s.Transport.SecureInbound(ctx, wire, p)
	if err != nil {
		return nil, err
	}
	return s.listener(ctx, secured, wire)
}

// SecureOutbound secures a connection that this node has begun.
func (s *security) SecureOutbound(ctx context.Context, c net.Conn, p peer.ID) (sec.SecureConn, error) {
	var by sec.SecureTransport = s.Transport
	if p == "" { // whoever it is: the proof says that it is a member
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

// A tap is a connection below Noise, which notes what the handshake consists of: the ephemeral keys of both sides are
// in it, so that no two channels have the same, and who sits in between has one with each side.
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

// A transcript is the hash of the first frames that go one way; what follows is not in it. A frame has its length
// before it, in two bytes.
type transcript struct {
	hash hash.Hash
	head []byte // of the length, what has come
	rest int    // bytes of the frame that have not come
	left int    // frames, the one that is coming included
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

// sum is both directions, the dialler's first.
func (t *transcript) sum(answers *transcript) []byte {
	return bytes.Join([][]byte{t.hash.Sum(nil), answers.hash.Sum(nil)}, nil)
}
