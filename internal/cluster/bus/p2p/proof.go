package p2p

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"kumo/internal/base/secret"
)

// ErrNotMember is the error of a peer without the crawl's secret. A connection that breaks before the proof ends does
// not return it: if two nodes connect to each other at once, one of the connections is closed.
var ErrNotMember = errors.New("it is no node of this crawl, or has another secret")

// errSilent is the error of a peer that stays connected and proves nothing.
var errSilent = fmt.Errorf("no proof of membership in this crawl within %v", proofTime)

const (
	nonceSize = 32
	proofTime = 5 * time.Second // for a peer to prove that it is a member
)

// A membership proves to peers that this node has the secret, and verifies that they have it. The dialer sends a nonce,
// the listener its own nonce and a MAC, the dialer its MAC. A MAC covers the side, both peers, both nonces and the
// channel, so it cannot be replayed elsewhere. A failed proof only ends the connection. Before that the dialer sends a
// MAC of zeros, so that the listener does not take this for a broken connection.
type membership struct {
	key    []byte
	refuse func(error) // called with the error of each refused peer; may be nil
}

func newMembership(s secret.Secret, crawl string) (membership, error) {
	key, err := s.Derive("p2p membership of "+crawl, sha256.Size)
	return membership{key: key}, err
}

// prove runs one side of the proof on a connection. It closes the connection if the proof fails.
func (m membership) prove(ctx context.Context, c io.Closer, side func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, proofTime, errSilent)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	err := side(ctx)
	if err == nil {
		return nil
	}
	_ = c.Close()
	if ctx.Err() != nil && !errors.Is(err, ErrNotMember) {
		err = context.Cause(ctx) // the timeout caused the error
	}
	if m.refuse != nil && (errors.Is(err, ErrNotMember) || errors.Is(err, errSilent)) {
		m.refuse(err)
	}
	return err
}

// A channelEnds identifies a channel: the two peers, and bytes that only these know and that differ for each channel.
type channelEnds struct {
	dialer, listener peer.ID
	channel          []byte
}

// dial proves membership as the dialer, and verifies the listener's.
func (m membership) dial(c io.ReadWriter, at channelEnds) error {
	var ours, theirs [nonceSize]byte
	rand.Read(ours[:]) // never fails
	if _, err := c.Write(ours[:]); err != nil {
		return fmt.Errorf("start the proof of membership: %w", err)
	}
	var mac [sha256.Size]byte
	if err := readAll(c, theirs[:], mac[:]); err != nil {
		return fmt.Errorf("receive the proof of membership: %w", err)
	}
	if !hmac.Equal(mac[:], m.mac("listener", at, ours, theirs)) {
		if _, err := c.Write(make([]byte, sha256.Size)); err == nil {
			_, _ = c.Read(mac[:1]) // wait until the listener has read that, and closes the connection
		}
		return fmt.Errorf("%s: %w", at.listener, ErrNotMember)
	}
	if _, err := c.Write(m.mac("dialler", at, ours, theirs)); err != nil {
		return fmt.Errorf("prove membership: %w", err)
	}
	return nil
}

func (m membership) accept(c io.ReadWriter, at channelEnds) error {
	var ours, theirs [nonceSize]byte
	if err := readAll(c, theirs[:]); err != nil {
		return fmt.Errorf("receive the proof of membership: %w", err)
	}
	rand.Read(ours[:])
	if _, err := c.Write(append(ours[:], m.mac("listener", at, theirs, ours)...)); err != nil {
		return fmt.Errorf("prove membership: %w", err)
	}
	var mac [sha256.Size]byte
	if err := readAll(c, mac[:]); err != nil {
		return fmt.Errorf("receive the proof of membership: %w", err)
	}
	if !hmac.Equal(mac[:], m.mac("dialler", at, theirs, ours)) {
		return fmt.Errorf("%s: %w", at.dialer, ErrNotMember)
	}
	return nil
}

// mac returns the MAC by which a side proves its membership; the dialer's nonce comes first.
func (m membership) mac(side string, at channelEnds, nonces ...[nonceSize]byte) []byte {
	h := hmac.New(sha256.New, m.key)
	for _, part := range [][]byte{
		[]byte("kumo membership 1"), []byte(side), []byte(at.dialer), []byte(at.listener),
		nonces[0][:], nonces[1][:], at.channel,
	} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return h.Sum(nil)
}

func readAll(r io.Reader, parts ...[]byte) error {
	for _, part := range parts {
		if _, err := io.ReadFull(r, part); err != nil {
			if reset, is := errors.AsType[*network.StreamError](
				err,
			); is &&
				reset.Remote { // the peer does not expect a proof on this stream
				return fmt.Errorf("%w: %w", ErrNotMember, err)
			}
			return err
		}
	}
	return nil
}
