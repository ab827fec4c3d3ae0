package p2p

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"kumo/internal/secret"
)

// ErrNotMember is a peer that has not proved to have the crawl's secret.
var ErrNotMember = errors.New("it is no node of this crawl, or has another secret")

const (
	nonceSize = 32
	proofTime = 5 * time.Second // for a peer to prove that it is a member
)

// A membership proves to others that this node has the secret, and checks that they do. The dialler sends a nonce; the
// other side answers with its own and a MAC; the dialler checks that and sends its MAC. A MAC is over the side whose it
// is, both peers, both nonces and the channel, so that none is worth anything anywhere else. Whoever fails at any of it
// is told nothing but that the connection ends.
type membership struct{ key []byte }

func newMembership(s secret.Secret, crawl string) (membership, error) {
	key, err := s.Derive("p2p membership of "+crawl, sha256.Size)
	return membership{key}, err
}

// A meeting is two peers at the ends of a channel: bytes that only these ends have, and that differ from channel to
// channel.
type meeting struct {
	dialler, listener peer.ID
	channel           []byte
}

// dial proves membership as the dialler, and has the other side prove it.
func (m membership) dial(c io.ReadWriter, at meeting) error {
	var ours, theirs [nonceSize]byte
	rand.Read(ours[:]) // it does not fail
	if _, err := c.Write(ours[:]); err != nil {
		return fmt.Errorf("begin the proof of membership: %w", err)
	}
	var mac [sha256.Size]byte
	if err := readAll(c, theirs[:], mac[:]); err != nil {
		return fmt.Errorf("no proof of membership came: %w: %w", ErrNotMember, err)
	}
	if !hmac.Equal(mac[:], m.mac("listener", at, ours, theirs)) {
		return fmt.Errorf("%s: %w", at.listener, ErrNotMember)
	}
	if _, err := c.Write(m.mac("dialler", at, ours, theirs)); err != nil {
		return fmt.Errorf("prove membership: %w", err)
	}
	return nil
}

// accept is the other end of dial.
func (m membership) accept(c io.ReadWriter, at meeting) error {
	var ours, theirs [nonceSize]byte
	if err := readAll(c, theirs[:]); err != nil {
		return fmt.Errorf("no proof of membership came: %w: %w", ErrNotMember, err)
	}
	rand.Read(ours[:])
	if _, err := c.Write(append(ours[:], m.mac("listener", at, theirs, ours)...)); err != nil {
		return fmt.Errorf("prove membership: %w", err)
	}
	var mac [sha256.Size]byte
	if err := readAll(c, mac[:]); err != nil {
		return fmt.Errorf("no proof of membership came: %w: %w", ErrNotMember, err)
	}
	if !hmac.Equal(mac[:], m.mac("dialler", at, theirs, ours)) {
		return fmt.Errorf("%s: %w", at.dialler, ErrNotMember)
	}
	return nil
}

// mac is what a side proves its membership with; the dialler's nonce comes first.
func (m membership) mac(side string, at meeting, nonces ...[nonceSize]byte) []byte {
	h := hmac.New(sha256.New, m.key)
	for _, part := range [][]byte{
		[]byte("kumo membership 1"), []byte(side), []byte(at.dialler), []byte(at.listener),
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
			return err
		}
	}
	return nil
}
