package p2p

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"

	"kumo/internal/base/secret"
)

func members(t testing.TB, s secret.Secret, crawl string) membership {
	t.Helper()
	m, err := newMembership(s, crawl)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// prove lets two sides prove their membership to each other over a pipe, and returns what each has sent.
func prove(t testing.TB, dialler, listener membership, one, other channelEnds) (sent, got []byte, dialled, accepted error) {
	t.Helper()
	a, b := net.Pipe()
	var toListener, toDialler bytes.Buffer
	done := make(chan error, 1)
	go func() {
		err := listener.accept(rw{io.TeeReader(b, &toListener), b}, other)
		b.Close()
		done <- err
	}()
	dialled = dialler.dial(rw{io.TeeReader(a, &toDialler), a}, one)
	a.Close()
	accepted = <-done
	return toListener.Bytes(), toDialler.Bytes(), dialled, accepted
}

type rw struct {
	io.Reader
	io.Writer
}

func TestProof(t *testing.T) {
	s := secret.New()
	m := members(t, s, "crawl")
	at := channelEnds{"a", "b", []byte("channel")}
	if sent, got, dialled, accepted := prove(t, m, m, at, at); dialled != nil || accepted != nil ||
		len(sent) != 64 || len(got) != 64 {
		t.Fatalf("members do not find each other: %v, %v; %d and %d bytes", dialled, accepted, len(sent), len(got))
	}
	for name, c := range map[string]struct {
		other membership
		at    channelEnds
	}{
		"another secret":       {members(t, secret.New(), "crawl"), at},
		"no secret":            {members(t, secret.Secret{}, "crawl"), at},
		"another crawl":        {members(t, s, "crawl2"), at},
		"another dialler":      {m, channelEnds{"c", "b", []byte("channel")}},
		"another listener":     {m, channelEnds{"a", "c", []byte("channel")}},
		"sides changed":        {m, channelEnds{"b", "a", []byte("channel")}},
		"names cut elsewhere":  {m, channelEnds{"ab", "", []byte("channel")}},
		"another channel":      {m, channelEnds{"a", "b", []byte("channeL")}},
		"a channel that is no": {m, channelEnds{"a", "b", nil}},
	} {
		for as, sides := range map[string][2]membership{"listener": {m, c.other}, "dialler": {c.other, m}} {
			_, _, dialled, accepted := prove(t, sides[0], sides[1], at, c.at)
			if !errors.Is(dialled, ErrNotMember) || !errors.Is(accepted, ErrNotMember) {
				t.Errorf("%s as the %s: %v, %v", name, as, dialled, accepted)
			}
		}
	}
}

// A connection that breaks during a proof shows nothing about its peer, and a connection with a silent peer is closed.
func TestProofsThatBreakOff(t *testing.T) {
	var refused []error
	m := members(t, secret.New(), "crawl")
	m.refuse = func(err error) { refused = append(refused, err) }
	at := channelEnds{"a", "b", []byte("channel")}
	sent, got, _, _ := prove(t, m, m, at, at)
	for _, all := range [][]byte{sent, got} {
		for n := range all {
			for name, side := range map[string]func(io.ReadWriter, channelEnds) error{"dialler": m.dial, "listener": m.accept} {
				err := m.prove(t.Context(), io.NopCloser(nil), func(context.Context) error {
					return side(rw{bytes.NewReader(all[:min(n, 63)]), io.Discard}, at)
				})
				if err == nil || errors.Is(err, ErrNotMember) {
					t.Errorf("a %s that hears %d bytes says %v", name, n, err)
				}
			}
		}
	}
	if len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
	for want, end := range map[error]func(context.CancelFunc){errSilent: func(context.CancelFunc) {},
		context.Canceled: func(cancel context.CancelFunc) { cancel() }} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			a, b := net.Pipe()
			defer b.Close()
			end(cancel)
			err := m.prove(ctx, a, func(context.Context) error { return m.accept(a, at) })
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		})
	}
	if len(refused) != 1 || !errors.Is(refused[0], errSilent) {
		t.Errorf("refused: %v", refused)
	}
}

// A recorded proof cannot be replayed, for either side, nor an answer as a query.
func TestProofsAreGoodOnce(t *testing.T) {
	m := members(t, secret.New(), "crawl")
	at := channelEnds{"a", "b", []byte("channel")}
	sent, got, _, _ := prove(t, m, m, at, at)
	if err := m.accept(rw{bytes.NewReader(sent), io.Discard}, at); !errors.Is(err, ErrNotMember) {
		t.Errorf("what a dialler has said is taken again: %v", err)
	}
	if err := m.dial(rw{bytes.NewReader(got), io.Discard}, at); !errors.Is(err, ErrNotMember) {
		t.Errorf("what a listener has said is taken again: %v", err)
	}
	// A listener's answer, sent back to it as the dialer's.
	a, b := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- m.accept(b, at) }()
	var nonce [nonceSize]byte
	rand.Read(nonce[:])
	if _, err := a.Write(nonce[:]); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 64)
	if _, err := io.ReadFull(a, answer); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write(answer[nonceSize:]); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrNotMember) {
		t.Errorf("an answer sent back is taken: %v", err)
	}
}

func FuzzProof(f *testing.F) {
	m, err := newMembership(secret.Secret{}, "crawl")
	if err != nil {
		f.Fatal(err)
	}
	at := channelEnds{"a", "b", []byte("channel")}
	sent, got, _, _ := prove(f, m, m, at, at)
	f.Add(sent)
	f.Add(got)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if m.accept(rw{bytes.NewReader(data), io.Discard}, at) == nil ||
			m.dial(rw{bytes.NewReader(data), io.Discard}, at) == nil {
			t.Error("it is taken for a proof")
		}
	})
}

func FuzzName(f *testing.F) {
	f.Add([]byte("\x04nameand more"))
	f.Add([]byte{65})
	f.Fuzz(func(t *testing.T, data []byte) {
		if name, err := readName(bytes.NewReader(data)); err == nil && (len(name) != int(data[0]) || len(name) > maxName) {
			t.Errorf("%q of %q", name, data)
		}
	})
}

// A channel consists of what both ends see of the handshake, however it is split, and nothing after it.
func TestTranscript(t *testing.T) {
	one, two := newTranscript(2), newTranscript(2)
	all := append([]byte{0, 3, 'a', 'b', 'c', 1, 0}, make([]byte, 256)...)
	one.add(append(bytes.Clone(all), "what follows"...))
	for _, b := range all {
		two.add([]byte{b})
	}
	two.add([]byte("something else"))
	if !bytes.Equal(one.sum(newTranscript(1)), two.sum(newTranscript(1))) {
		t.Error("the ends differ")
	}
	all[3]++
	if two = newTranscript(2); true {
		two.add(all)
	}
	if bytes.Equal(one.sum(newTranscript(1)), two.sum(newTranscript(1))) {
		t.Error("another handshake is the same")
	}
}

// strangers returns libp2p peers without the secret, over one transport: a plain one, a peer that requests Noise by
// kumo's name and proves nothing, and a node with another secret.
func strangers(t *testing.T, transport libp2p.Option) map[string]host.Host {
	t.Helper()
	other := open(t, Config{Name: "other", Secret: secret.New()})
	all := map[string]host.Host{"a node with another secret": other.host}
	for name, security := range map[string]libp2p.Option{
		"a plain peer":            libp2p.Security(noise.ID, noise.New),
		"one that proves nothing": libp2p.Security(securityID, noise.New),
	} {
		h, err := libp2p.New(transport, security, libp2p.NoListenAddrs, libp2p.DisableMetrics())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		all[name] = h
	}
	return all
}

// A peer without the secret gets no stream of any protocol, not even the first that libp2p opens, and sees nothing
// else; the node sees no connection.
func TestStrangersGetNothing(t *testing.T) {
	t.Parallel()
	for transport, c := range map[string]struct {
		option libp2p.Option
		listen string
	}{
		"tcp":  {libp2p.Transport(tcp.NewTCPTransport), "/ip4/127.0.0.1/tcp/0"},
		"quic": {libp2p.Transport(libp2pquic.NewTransport), "/ip4/127.0.0.1/udp/0/quic-v1"},
	} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			m := open(t, Config{Name: "m", Secret: secret.New(), Listen: []string{c.listen}})
			seen := make(chan peer.ID, 100)
			m.host.Network().Notify(&network.NotifyBundle{
				ConnectedF: func(_ network.Network, c network.Conn) { seen <- c.RemotePeer() }})
			for name, h := range strangers(t, c.option) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				h.Peerstore().AddAddrs(m.id, m.host.Addrs(), time.Hour)
				for _, p := range []protocol.ID{identify.ID, linkProtocol, "/libp2p/circuit/relay/0.2.0/hop"} {
					s, err := h.NewStream(ctx, m.id, p)
					if err == nil { // streams are opened without a round trip, and fail when they are used
						_, err = s.Read(make([]byte, 1))
					}
					if err == nil {
						t.Errorf("%s has a stream of %s", name, p)
					}
				}
				cancel()
				if conns := m.host.Network().ConnsToPeer(h.ID()); len(conns) > 0 {
					t.Errorf("%s is connected: %v", name, conns)
				}
			}
			select {
			case id := <-seen:
				t.Errorf("the node has seen a connection of %s", id)
			default:
			}
			if s := m.Stats(); s.Refused < 2 || s.Peers != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// The same in the other direction: a node that dials a stranger closes the connection, and returns the reason.
func TestStrangersAreNotDialled(t *testing.T) {
	t.Parallel()
	m := open(t, Config{Name: "m", Secret: secret.New()})
	other := open(t, Config{Name: "other", Secret: secret.New()})
	for _, address := range other.Addrs() {
		if _, err := m.Dial(t.Context(), address); !errors.Is(err, ErrNotMember) {
			t.Errorf("%s with another secret: %v", address, err)
		}
	}
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := libp2p.New(libp2p.Identity(key), libp2p.DisableMetrics(),
		libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plain.Close() })
	for _, a := range plain.Addrs() {
		for _, address := range []string{a.String(), a.String() + "/p2p/" + plain.ID().String()} {
			_, err := m.Dial(t.Context(), address)
			if err == nil || !errors.Is(err, ErrNotMember) && !strings.Contains(err.Error(), "must be a TCP address") {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
	if conns := m.host.Network().Conns(); len(conns) > 0 {
		t.Errorf("it is connected: %v", conns)
	}
}
