package p2p

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	tptu "github.com/libp2p/go-libp2p/p2p/net/upgrader"

	"kumo/internal/base/secret"
)

// pipe returns both ends of a TCP connection.
func pipe(t *testing.T) (ends [2]net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i, open := range []func() (net.Conn, error){
		func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }, l.Accept,
	} {
		if ends[i], err = open(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends
}

// bothDial has nodes secure the ends of one connection, each as its dialer.
func bothDial(t *testing.T, nodes [2]*Messenger) (secured [2]sec.SecureConn, errs [2]error) {
	t.Helper()
	ends := pipe(t)
	var both sync.WaitGroup
	for i, m := range nodes {
		s, err := m.membership.newSecurity(securityID, m.host.Peerstore().PrivKey(m.id),
			[]tptu.StreamMuxer{{ID: yamux.ID, Muxer: muxer{yamux.DefaultTransport}}})
		if err != nil {
			t.Fatal(err)
		}
		both.Go(func() {
			if secured[i], errs[i] = s.SecureOutbound(t.Context(), ends[i], nodes[1-i].id); errs[i] != nil {
				ends[i].Close()
			}
		})
	}
	both.Wait()
	return secured, errs
}

// A TCP connection that both nodes have dialed works like any other: both prove their membership, and both open
// streams.
func TestSimultaneousOpen(t *testing.T) {
	t.Parallel()
	s := secret.New()
	nodes := [2]*Messenger{open(t, Config{Name: "a", Secret: s}), open(t, Config{Name: "b", Secret: s})}
	secured, errs := bothDial(t, nodes)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	var muxed [2]network.MuxedConn
	for i, c := range secured {
		if c.RemotePeer() != nodes[1-i].id || c.ConnState().StreamMultiplexer != protocol.ID(yamux.ID) {
			t.Errorf("%d has a connection to %s, %+v", i, c.RemotePeer(), c.ConnState())
		}
		var err error
		if muxed[i], err = (muxer{yamux.DefaultTransport}).NewConn(c, false, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { muxed[i].Close() })
	}
	for i, from := range muxed {
		got := make(chan string, 1)
		go func() {
			s, err := muxed[1-i].AcceptStream()
			if err != nil {
				got <- err.Error()
				return
			}
			data, err := io.ReadAll(s)
			got <- string(data)
			_ = errors.Join(err, s.Close())
		}()
		s, err := from.OpenStream(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if said := wait(t, got, "the stream"); said != "hello" {
			t.Errorf("a stream of %d says %q", i, said)
		}
	}
	for _, m := range nodes {
		if n := m.Stats().Refused; n != 0 {
			t.Errorf("%d refused", n)
		}
	}
}

// Strangers get no further if they dial at the same moment.
func TestSimultaneousOpenWithAStranger(t *testing.T) {
	t.Parallel()
	nodes := [2]*Messenger{open(t, Config{Name: "a", Secret: secret.New()}),
		open(t, Config{Name: "b", Secret: secret.New()})}
	_, errs := bothDial(t, nodes)
	for i, err := range errs {
		if !errors.Is(err, ErrNotMember) {
			t.Errorf("%d: %v", i, err)
		}
		if n := nodes[i].Stats().Refused; n != 1 {
			t.Errorf("%d has refused %d", i, n)
		}
	}
}

// Nodes that all dial each other at once close all connections but one of each pair, even during proofs. That is no
// evidence that a node is not a member.
func TestManyDialAtOnce(t *testing.T) {
	t.Parallel()
	s := secret.New()
	var all []*Messenger
	for range 8 {
		all = append(all, open(t, Config{Secret: s}))
	}
	for _, m := range all {
		for _, o := range all {
			if o != m {
				m.Learn(o.Self())
			}
		}
	}
	until(t, "all are connected", func() bool {
		for _, m := range all {
			for _, o := range all {
				if o != m && len(m.host.Network().ConnsToPeer(o.id)) == 0 {
					_ = m.Send(o.Node(), []byte("hello"))
				}
			}
		}
		return !slices.ContainsFunc(all, func(m *Messenger) bool { return m.Stats().Peers < len(all)-1 })
	})
	for _, m := range all {
		if s := m.Stats(); s.Refused != 0 {
			t.Errorf("%s: %+v", m.Node(), s)
		}
	}
}
