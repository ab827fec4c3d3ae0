package natsbus

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A strait is a connection to a server that can be blocked: then nothing passes, without an error.
type strait struct {
	net.Listener
	closed chan struct{}
}

func newStrait(t *testing.T, to string) *strait {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &strait{l, make(chan struct{})}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			t.Cleanup(func() { _, _ = in.Close(), out.Close() })
			all.Go(func() { s.pass(in, out) })
			all.Go(func() { s.pass(out, in) })
		}
	})
	return s
}

func (s *strait) pass(from io.Reader, to io.Writer) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-s.closed:
			return
		default:
		}
		if err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// A server that silently stops reading does not block a sender for much longer than it takes to notice that: the node
// must be able to renew its lease through another server.
func TestSendIsNotStuck(t *testing.T) {
	t.Parallel()
	url := natsServer(t, server.Options{JetStream: true, MaxPayload: maxPayload})
	s := newStrait(t, strings.TrimPrefix(url, "nats://"))
	c := open(t, Config{Crawl: "a", NATS: "nats://" + s.Addr().String(), Timings: Timings{Ping: 100 * time.Millisecond}})
	b, err := c.Join("x~1")
	if err != nil {
		t.Fatal(err)
	}
	close(s.closed)
	began := time.Now()
	for range 256 {
		_ = b.Send("y~1", make([]byte, 256<<10)) // it may fail
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("messages were sent for %v", took)
	}
}
