package synthweb

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// serveByAddress skips the test if there is one loopback address only.
func serveByAddress(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.ByAddress = true
	s, err := Serve(t.Context(), New(cfg), ServeOptions{})
	if err != nil {
		t.Skipf("this system has no such addresses: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestAWalkByAddressOverTLSFindsEverything(t *testing.T) {
	cfg := Clean(3, 6, 120)
	cfg.TLS = true
	s := serveByAddress(t, cfg)
	w := walk(t, s, false)
	if got := s.Score(); !got.Perfect() || got.Covered == 0 {
		t.Errorf("%v", got)
	}
	for u := range w.found {
		if !strings.HasPrefix(u, "https://127.77.") {
			t.Errorf("%s is no URL of this web", u)
		}
	}
}

func TestTLSIsOfVersion13(t *testing.T) {
	cfg := Clean(1, 1, 10)
	cfg.TLS = true
	s := serve(t, New(cfg), ServeOptions{Addresses: 1})
	nc, err := tls.Dial("tcp4", s.Addr(s.web.Host(0)).String(), &tls.Config{InsecureSkipVerify: true,
		ServerName: s.web.Host(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	state := nc.ConnectionState()
	if cert := state.PeerCertificates[0]; state.Version != tls.VersionTLS13 || cert.VerifyHostname(s.web.Host(0)) != nil {
		t.Errorf("version %x, certificate for %v", state.Version, cert.DNSNames)
	}
}

func TestEveryLoopbackAddressIsFoundAgain(t *testing.T) {
	cfg := Clean(1, maxAddresses, maxAddresses)
	cfg.ByAddress = true
	w := New(cfg)
	for i := range w.hosts {
		if got, ok := w.hostOf(w.Host(i) + ":8080"); !ok || int(got) != i {
			t.Fatalf("%s is host %d, found %d, %v", w.Host(i), i, got, ok)
		}
	}
	for _, name := range []string{"", "127.0.0.1", "127.77.0.0", "127.77.0.251", "127.77.250.1", "h0000.synth.test",
		"::1"} {
		if i, ok := w.hostOf(name); ok {
			t.Errorf("%q is taken for host %d", name, i)
		}
	}
}

func TestDeadAddresses(t *testing.T) {
	cfg := Clean(1, 4, 40)
	cfg.Traits[Refused], cfg.Traits[Hanging] = 250, 250
	s := serveByAddress(t, cfg)
	for i := s.web.Len(); i < len(s.web.hosts); i++ {
		name, refused := s.web.Host(i), s.web.hosts[i].traits.has(Refused)
		nc, err := net.DialTimeout("tcp4", s.Addr(name).String(), time.Second)
		if refused != (err != nil) {
			t.Errorf("%s: refused %v, %v", name, refused, err)
		}
		if err != nil {
			continue
		}
		io.WriteString(nc, get(name, "/"))
		nc.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, err := nc.Read(make([]byte, 1)); n > 0 || !os.IsTimeout(err) {
			t.Errorf("%s answers: %d, %v", name, n, err)
		}
		nc.Close()
	}
}

func TestTooManyAddresses(t *testing.T) {
	for _, c := range []struct {
		hosts int
		opts  ServeOptions
	}{{maxAddresses + 1, ServeOptions{}}, {2, ServeOptions{Addresses: 1}}} {
		if s, err := Serve(t.Context(), New(Config{Hosts: c.hosts, ByAddress: true}), c.opts); err == nil {
			s.Close()
			t.Errorf("%d hosts by address are served on %d", c.hosts, c.opts.Addresses)
		}
	}
}

func TestAnswersPerConnection(t *testing.T) {
	s := serve(t, New(Clean(1, 1, 50)), ServeOptions{PerConnection: 3})
	c := newClient(s)
	defer c.CloseIdleConnections()
	for i := range 7 {
		resp, _ := fetch(t, s, c, s.web.Host(0), fmt.Sprintf("/gone/%d.html", i))
		if resp.Close != (i%3 == 2) {
			t.Errorf("answer %d: closes the connection: %v", i, resp.Close)
		}
	}
	if got := s.Score().Connections; got != 3 {
		t.Errorf("%d connections for 7 answers, 3 each", got)
	}
}

func TestLatenciesLieBetween(t *testing.T) {
	cfg := Clean(7, 1000, 1000)
	cfg.Latency, cfg.Slowest = 500*time.Millisecond, 9*time.Second
	w := New(cfg)
	least, most, total := time.Hour, time.Duration(0), time.Duration(0)
	for i := range w.Len() {
		least, most, total = min(least, w.Latency(i)), max(most, w.Latency(i)), total+w.Latency(i)
	}
	if least < cfg.Latency || least > time.Second || most > cfg.Slowest || most < 8500*time.Millisecond {
		t.Errorf("from %v to %v", least, most)
	}
	if mean := total / 1000; mean < 4400*time.Millisecond || mean > 5100*time.Millisecond {
		t.Errorf("mean %v", mean)
	}
}

func TestMeanSize(t *testing.T) {
	cfg := Clean(1, 10, 4000)
	cfg.MedianSize = MedianSize(242_000)
	w := New(cfg)
	p := &writer{w: w, port: 80}
	total := 0
	for id := range w.total {
		p.answer(w.ref(id), "")
		total += p.size(false)
	}
	if mean := total / w.total; mean < 225_000 || mean > 260_000 {
		t.Errorf("pages are of %d bytes in the mean", mean)
	}
}

// After a number of requests, responses are delayed, until the delay is reset.
func TestSlow(t *testing.T) {
	s := serve(t, New(Clean(1, 1, 10)), ServeOptions{})
	const h0, later = "h0000.synth.test", 50 * time.Millisecond
	ask := func() time.Duration {
		began := time.Now()
		nc := raw(t, s, h0, strings.Replace(get(h0, "/"), "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
		if _, err := io.Copy(io.Discard, nc); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	s.SetDelay(1, time.Hour)
	ask()
	s.SetDelay(1, later)
	if took := ask(); took < later {
		t.Errorf("the second answer takes %v", took)
	}
	s.SetDelay(0, 0)
	ask()
}
