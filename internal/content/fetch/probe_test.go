package fetch

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"kumo/internal/base/page"
)

// listen sends the number of bytes received on each connection to a new loopback listener when the connection is
// closed.
func listen(t *testing.T) (addr string, sent chan int64) {
	sent = make(chan int64, 8)
	return serve(t, func(_ int, conn net.Conn) {
		n, err := io.Copy(io.Discard, conn)
		if err != nil && !errors.Is(err, net.ErrClosed) { // the test may end before the server accepts the probe's connection
			t.Error(err)
		}
		sent <- n
	}), sent
}

// closed returns a loopback port without a listener.
func closed(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

func wantProbe(t *testing.T, c *Client, host string, want page.Failure) {
	t.Helper()
	took, err := c.Probe(t.Context(), host, 5*time.Second)
	var e *Error
	switch {
	case want == page.None && (err != nil || took <= 0 || took > 5*time.Second):
		t.Errorf("%s: %v, %v", host, took, err)
	case want != page.None && (!errors.As(err, &e) || e.Failure != want || e.URL != host):
		t.Errorf("%s: %v, want %q", host, err, want)
	}
}

func TestProbeConnectsAndSendsNothing(t *testing.T) {
	addr, sent := listen(t)
	_, port, _ := net.SplitHostPort(addr)
	c := newClient(t, Config{Resolve: []string{"up.example:*:127.0.0.1"}})
	for _, host := range []string{addr, "up.example:" + port} {
		wantProbe(t, c, host, page.None)
		if n := <-sent; n != 0 {
			t.Errorf("%s was sent %d bytes", host, n)
		}
	}
	wantProbe(t, c, "up.example:"+closed(t), page.Refused)
}

// A host without a port can be reached if one of the two ports works.
func TestProbeTriesBothPorts(t *testing.T) {
	addr, sent := listen(t)
	_, port, _ := net.SplitHostPort(addr)
	c := newClient(t, Config{})
	for _, ports := range [][2]string{{port, closed(t)}, {closed(t), port}} {
		c.probePorts = ports
		wantProbe(t, c, "127.0.0.1", page.None)
		<-sent
	}
	c.probePorts = [2]string{closed(t), closed(t)}
	wantProbe(t, c, "127.0.0.1", page.Refused)
	if c := newClient(t, Config{}); c.probePorts != [2]string{"80", "443"} {
		t.Errorf("%v are tried", c.probePorts)
	}
	if d := c.endpoints("[::1]"); len(d) != 2 || d[0].hostname != "::1" {
		t.Errorf("%+v", d)
	}
	if d := c.endpoints("[::1]:8080"); len(d) != 1 || d[0].hostname != "::1" || d[0].port != "8080" {
		t.Errorf("%+v", d)
	}
}

func TestProbeIsGuarded(t *testing.T) {
	addr, sent := listen(t)
	_, port, _ := net.SplitHostPort(addr)
	c := newGuarded(t, Config{})
	for _, host := range []string{addr, "localhost:" + port} { // after the name lookup
		wantProbe(t, c, host, page.Private)
	}
	if len(sent) > 0 {
		t.Error("it was connected to")
	}
	c.Allow(addr)
	wantProbe(t, c, addr, page.None)
}

// The timeout includes the name lookup, and the context can end the probe.
func TestProbeEndsInTime(t *testing.T) {
	mute, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	c := newClient(t, Config{DNSServer: mute.LocalAddr().String(), ConnectTimeout: time.Second})
	began := time.Now()
	var e *Error
	if _, err := c.Probe(t.Context(), "slow.example", 50*time.Millisecond); !errors.As(err, &e) || e.Failure != page.DNS ||
		time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := c.Probe(ctx, "slower.example", time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go c.Close()
	if _, err := c.Probe(t.Context(), "slowest.example", time.Hour); !errors.As(err, &e) {
		t.Error(err)
	}
}

func TestProbeBehindAProxy(t *testing.T) {
	addr, sent := listen(t)
	c := newGuarded(t, Config{Proxy: &url.URL{Scheme: "http", Host: addr}})
	wantProbe(t, c, "nowhere.example", page.None)
	if n := <-sent; n != 0 {
		t.Errorf("%d bytes were sent", n)
	}
}
