package p2p

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	msmux "github.com/multiformats/go-multistream"

	"kumo/internal/base/secret"
	"kumo/internal/cluster/strategy"
)

// A member that sends as much as it can is read at the configured rate. The excess is dropped at the sender, and all
// messages of other nodes arrive in the meantime.
func TestFlood(t *testing.T) {
	t.Parallel()
	const rate, n = 100, 300 // a rate that a busy machine reads, too
	s := secret.New()
	a := open(t, Config{Name: "a", Secret: s, Limits: Limits{Messages: rate}})
	flooder := open(t, Config{Name: "flooder", Secret: s, Limits: Limits{Queue: 1}}) // the smallest possible queue
	other := open(t, Config{Name: "other", Secret: s})
	dial(t, flooder, a)
	dial(t, other, a)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var flooded, heard atomic.Int64
	enough, received := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(received)
		_ = a.Receive(ctx, func(from strategy.Node, _ []byte) {
			switch from {
			case flooder.Node():
				if flooded.Add(1) == n {
					close(enough)
				}
			case other.Node():
				heard.Add(1)
			}
		})
	}()
	var sending sync.WaitGroup
	flooding, stop := context.WithCancel(ctx)
	began := time.Now()
	sending.Go(func() {
		for message := make([]byte, 4096); flooding.Err() == nil; {
			if flooder.Send(a.Node(), message) != nil {
				return
			}
		}
	})
	sent := int64(0)
	sending.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for flooding.Err() == nil {
			<-tick.C
			if other.Send(a.Node(), []byte("a word")) == nil {
				sent++
			}
		}
	})
	wait(t, enough, "the flood")
	took := time.Since(began)
	until(t, "the flood is held back, and the other is heard", func() bool {
		return a.Stats().Slowed > 0 && flooder.Stats().Overflow > 0 && heard.Load() >= 20
	})
	stop()
	sending.Wait()
	until(t, "all is heard that the other has said", func() bool { return heard.Load() == sent })
	cancel()
	<-received
	const least = (n - rate) * time.Second / rate
	if took < least*9/10 {
		t.Errorf("%d messages were read in %v, at %d a second it takes %v", n, took, rate, least)
	}
	t.Logf("%d messages were read in %v, %d of %d in all, %d overflowed; of others %d", n, took, flooded.Load(),
		flooder.Stats().Sent, flooder.Stats().Overflow, sent)
}

// A node that reads nothing holds no more than its limit, and gets the latest messages when it reads again.
func TestSlowReceiver(t *testing.T) {
	t.Parallel()
	s := secret.New()
	const most = 5 << 20
	a := open(t, Config{Name: "a", Secret: s, Limits: Limits{Queue: most}})
	b := open(t, Config{Name: "b", Secret: s})
	dial(t, a, b)
	const last = 20_000
	for i := range last + 1 { // 20 MB; one window of it is in transit
		if err := a.Send(b.Node(), fmt.Appendf(nil, "%01000d", i)); err != nil {
			t.Fatal(err)
		}
	}
	p := a.connected()[0]
	p.mu.Lock()
	waits := p.out.size()
	p.mu.Unlock()
	if waits > most {
		t.Errorf("%d bytes wait", waits)
	}
	if a.Stats().Overflow == 0 {
		t.Errorf("%+v", a.Stats())
	}
	got := make(chan struct{})
	before, count := -1, 0
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := b.Receive(ctx, func(_ strategy.Node, data []byte) {
		i, err := strconv.Atoi(string(data))
		if err != nil || i <= before {
			t.Errorf("%d after %d", i, before)
		}
		before = i
		count++
		if i == last {
			close(got)
			cancel()
		}
	})
	select {
	case <-got:
	default:
		t.Errorf("the last never came, but %d: %v", before, err)
	}
	t.Logf("%d of %d came, %d bytes waited", count, last+1, waits)
}

// rawLink returns a stream on which a member can send invalid data.
func rawLink(t *testing.T, from, to *Messenger) network.Stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	from.host.Network().StopNotify(from.notified) // it would open another link
	from.host.Peerstore().AddAddrs(to.id, to.host.Addrs(), peerstore.PermanentAddrTTL)
	c, err := from.host.Network().DialPeer(ctx, to.id)
	for err != nil && ctx.Err() == nil { // on a busy machine
		from.host.Network().(*swarm.Swarm).Backoff().Clear(to.id)
		c, err = from.host.Network().DialPeer(ctx, to.id)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.NewStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetProtocol(linkProtocol); err != nil {
		t.Fatal(err)
	}
	if err := msmux.SelectProtoOrFail(linkProtocol, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestGarbage(t *testing.T) {
	t.Parallel()
	s := secret.New()
	a := open(t, Config{Name: "a", Secret: s})
	good := open(t, Config{Name: "good", Secret: s})
	dial(t, good, a)
	got := receive(t, a)
	for name, garbage := range map[string]string{
		"a name that is none":  "\x03a b",
		"a name that is long":  "\xff",
		"a frame that is long": "\x01x" + "\xff\xff\xff\xff",
		"behind a good one":    "\x01x" + "\x02ok" + "\x80\x80\x80\x80\x80",
	} {
		bad := open(t, Config{Name: "bad", Secret: s})
		stream := rawLink(t, bad, a)
		if _, err := stream.Write([]byte(garbage)); err != nil {
			t.Fatal(err)
		}
		stream.SetDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, stream); err == nil || strings.Contains(err.Error(), "deadline") {
			t.Errorf("%s: the stream ends with %v", name, err)
		}
		bad.host.Network().Notify(bad.notified)
		if _, err := bad.Dial(t.Context(), a.Addrs()[0]); err == nil {
			t.Errorf("%s: it is let in again at once", name)
		}
		bad.Close()
	}
	if s := a.Stats(); s.Garbage != 4 {
		t.Errorf("%+v", s)
	}
	for len(got) > 0 {
		<-got
	}
	say(t, good, a.Node(), "still here", got)
}

// A member can open a bounded number of streams, even if it tries to open more.
func TestManyStreams(t *testing.T) {
	t.Parallel()
	s := secret.New()
	a := open(t, Config{Name: "a", Secret: s})
	bad := open(t, Config{Name: "bad", Secret: s})
	c := rawLink(t, bad, a).Conn()
	open := 0
	for range 1000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		s, err := c.NewStream(ctx)
		cancel()
		if err != nil {
			break
		}
		if err := s.SetProtocol(linkProtocol); err != nil {
			break
		}
		s.SetDeadline(time.Now().Add(patience))
		if msmux.SelectProtoOrFail(linkProtocol, s) == nil {
			open++
		}
	}
	held := 0
	for _, c := range a.host.Network().ConnsToPeer(bad.id) {
		held += len(c.GetStreams())
	}
	t.Logf("%d of 1000 streams were opened, %d are held", open, held)
	if held > 64 {
		t.Errorf("%d streams are held of one peer", held)
	}
	good := openNode(t, s)
	say(t, good, a.Node(), "still here", receiveAfter(t, a, func() { dial(t, good, a) }))
}

func openNode(t *testing.T, s secret.Secret) *Messenger {
	return open(t, Config{Name: "good", Secret: s})
}

// receiveAfter starts to receive after f.
func receiveAfter(t *testing.T, m *Messenger, f func()) chan string {
	f()
	return receive(t, m)
}

// The number of nodes is bounded. A node that was idle for a while makes room, others do not, and neither is reported
// as lost.
func TestManyNodes(t *testing.T) {
	t.Parallel()
	const most = 4
	s := secret.New()
	cfg, _, lost := told()
	cfg.Name, cfg.Secret, cfg.Limits = "a", s, Limits{Peers: most}
	a := open(t, cfg)
	var others []*Messenger
	otherCfg, _, otherLost := told()
	for i := range most {
		otherCfg.Name, otherCfg.Secret = fmt.Sprint("n", i), s
		others = append(others, open(t, otherCfg))
		dial(t, others[i], a)
	}
	more := open(t, Config{Name: "more", Secret: s})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := more.Dial(ctx, a.Addrs()...); err == nil {
		t.Error("there is room for one more")
	}
	a.mu.Lock()
	a.peers[others[1].Node()].used.Store(time.Now().Add(-2 * idleTime).UnixNano())
	a.mu.Unlock()
	dial(t, more, a)
	say(t, more, a.Node(), "in", receive(t, a))
	until(t, "both sides have noticed", func() bool { return others[1].Stats().Peers == 0 && a.Stats().Peers == most })
	if s := a.Stats(); s.Evicted != 1 {
		t.Errorf("%+v", s)
	}
	select {
	case n := <-lost:
		t.Errorf("%s is lost", n)
	case n := <-otherLost:
		t.Errorf("%s is lost to the one that made room", n)
	default:
	}
}

// Concurrent connections, of members and of strangers, leave the node enough resources.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	s := secret.New()
	a := open(t, Config{Name: "a", Secret: s, Limits: Limits{Peers: 8}})
	bad := open(t, Config{Name: "bad", Secret: s})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var dialling sync.WaitGroup
	for range 100 {
		dialling.Go(func() {
			_, _ = bad.identify(ctx, a.host.Addrs()[0]) // a proved connection that then ends
		})
		dialling.Go(func() {
			_ = bad.host.Connect(network.WithForceDirectDial(ctx, "again"), peer.AddrInfo{ID: a.id, Addrs: a.host.Addrs()})
		})
	}
	dialling.Wait()
	if n := len(a.host.Network().ConnsToPeer(bad.id)); n > 8 {
		t.Errorf("%d connections of one peer", n)
	}
	good := openNode(t, s)
	dial(t, good, a)
	say(t, good, a.Node(), string(bytes.Repeat([]byte("x"), 100_000)), receive(t, a))
}

// until waits for an event in another goroutine.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !is(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
