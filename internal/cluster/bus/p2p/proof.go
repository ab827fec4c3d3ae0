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

// ErrNotMember is a peer without the crawl's secret. A connection that breaks before the proof does not show this: of
// two that two nodes open to each other, one is closed.
var ErrNotMember = errors.New("it is no node of this crawl, or has another secret")

// errSilent is a peer that keeps its connection and proves nothing.
var errSilent = fmt.Errorf("it has not proved within %v to be a node of this crawl", proofTime)

const (
	nonceSize = 32
	proofTime = 5 * time.Second // for a peer to prove that it is a member
)

// A membership proves to others that this node has the secret, and checks that they do. The dialler sends a nonce, the
// listener its own and a MAC, the dialler its MAC. A MAC covers the side, both peers, both nonces and the channel, so
// it is worth nothing elsewhere. A failed proof only ends the connection; before that a listener gets a MAC of zeros,
// so that it does not take this for a broken connection.
type membership struct {
	key    []byte
	refuse func(error) // told of every peer that is turned away; may be nil
}

func newMembership(s secret.Secret, crawl string) (membership, error) {
	key, err := s.Derive("p2p membership of "+crawl, sha256.Size)
	return membership{key: key}, err
}

// prove runs one side of the proof on a connection, which ends if the proof fails.
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
		err = context.Cause(ctx) // what failed did because of that
	}
	if m.refuse != nil && (errors.Is(err, ErrNotMember) || errors.Is(err, errSilent)) {
		m.refuse(err)
	}
	return err
}

// A meeting is two peers at the ends of a channel: bytes that only these ends have, and that differ from channel to
// channel.
type channelEnds struct {
	dialer, listener peer.ID
	channel          []byte
}

// dial proves membership as the dialler, and has the other side prove it.
func (m membership) dial(c io.ReadWriter, at channelEnds) error {
	var ours, theirs [nonceSize]byte
	rand.Read(ours[:]) // it does not fail
	if _, err := c.Write(ours[:]); err != nil {
		return fmt.Errorf("begin the proof of membership: %w", err)
	}
	var mac [sha256.Size]byte
	if err := readAll(c, theirs[:], mac[:]); err != nil {
		return fmt.Errorf("no proof of membership came: %w", err)
	}
	if !hmac.Equal(mac[:], m.mac("listener", at, ours, theirs)) {
		if _, err := c.Write(make([]byte, sha256.Size)); err == nil {
			_, _ = c.Read(mac[:1]) // until the listener has read that, and ends the connection
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
		return fmt.Errorf("no proof of membership came: %w", err)
	}
	rand.Read(ours[:])
	if _, err := c.Write(append(ours[:], m.mac("listener", at, theirs, ours)...)); err != nil {
		return fmt.Errorf("prove membership: %w", err)
	}
	var mac [sha256.Size]byte
	if err := readAll(c, mac[:]); err != nil {
		return fmt.Errorf("no proof of membership came: %w", err)
	}
	if !hmac.Equal(mac[:], m.mac("dialler", at, theirs, ours)) {
		return fmt.Errorf("%s: %w", at.dialer, ErrNotMember)
	}
	return nil
}

// mac is what a side proves its membership with; the dialler's nonce comes first.
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
				reset.Remote { // a stream that its peer does not take for a proof
				return fmt.Errorf("%w: %w", ErrNotMember, err)
			}
			return err
		}
	}
	return nil
}
