package synthweb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// raw sends requests over one connection and returns it.
func raw(t *testing.T, s *Server, host, text string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp4", s.Addr(host).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatal(err)
	}
	return nc
}

func get(host, target string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: naughty\r\n\r\n"
}

func fetch(t *testing.T, s *Server, c *http.Client, host, target string) (*http.Response, []byte) {
	t.Helper()
	resp, err := c.Get(fmt.Sprintf("http://%s:%d%s", host, s.Port(), target))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp, body
}

func TestScoreSeesWhatANaughtyClientDoes(t *testing.T) {
	s := serve(t, New(Clean(1, 2, 200)), ServeOptions{})
	c := newClient(s)
	defer c.CloseIdleConnections()
	const h0, h1 = "h0000.synth.test", "h0001.synth.test"
	for _, path := range []string{"/", "/robots.txt", "/", "/private/3.html", "/private/unheard/of", "/nothing",
		"/gone/1.html", "/gone/1.html"} {
		fetch(t, s, c, h0, path)
	}
	fetch(t, s, c, h1, "/ghost/1.html")
	got := s.Score()
	want := Score{Requests: 9, Connections: 2, Robots: 1, Repeats: 1, RepeatsOther: 1, Forbidden: 2, BeforeRobots: 2,
		Unknown: 2, Distinct: 4}
	have := Score{Requests: got.Requests, Connections: got.Connections, Robots: got.Robots, Repeats: got.Repeats,
		RepeatsOther: got.RepeatsOther, Forbidden: got.Forbidden, BeforeRobots: got.BeforeRobots, Unknown: got.Unknown,
		Distinct: got.Distinct}
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("got\n%v\nwant\n%v", have, want)
	}
	if got.Perfect() || got.Agents["Go-http-client/1.1"] != 9 || got.Examples["repeats"][0] != "http://"+h0+"/" {
		t.Errorf("agents %v, examples %v", got.Agents, got.Examples)
	}
	i, _ := s.web.hostOf(h1)
	if h := s.tally.hosts[i].state(time.Now()); h.requests != 1 || h.mostIn != 1 || h.measured {
		t.Errorf("%s: %+v", h1, h)
	}
	s.Reset()
	if got = s.Score(); got.Requests != 0 || got.Repeats != 0 || got.Covered != 0 || len(got.Agents) != 0 {
		t.Errorf("after a reset: %v", got)
	}
	fetch(t, s, c, h0, "/")
	if got = s.Score(); got.Agents["Go-http-client/1.1"] != 1 || got.Repeats != 0 {
		t.Errorf("agents after a reset %v, repeats %d", got.Agents, got.Repeats)
	}
}

func TestScoreSeesRequestsAtOnce(t *testing.T) {
	cfg := Clean(1, 1, 10)
	cfg.Latency = 200 * time.Millisecond
	s := serve(t, New(cfg), ServeOptions{})
	const h0 = "h0000.synth.test"
	var conns []net.Conn
	for range 3 {
		conns = append(conns, raw(t, s, h0, get(h0, "/robots.txt")))
	}
	for _, nc := range conns {
		if _, err := nc.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	got := s.Score()
	if got.MostInFlight.Value != 3 || got.MostOpen.Value != 3 || got.LeastGap.Value != 0 || got.LeastGap.Host != h0 {
		t.Errorf("three at once: %+v %+v %+v", got.MostInFlight, got.MostOpen, got.LeastGap)
	}
}

func TestPipelinedRequestsHaveNoGap(t *testing.T) {
	s := serve(t, New(Clean(1, 1, 10)), ServeOptions{})
	const h0 = "h0000.synth.test"
	nc := raw(t, s, h0, get(h0, "/")+get(h0, "/robots.txt")+strings.Replace(get(h0, "/"), "\r\n\r\n",
		"\r\nConnection: close\r\n\r\n", 1))
	if answers, err := io.ReadAll(nc); err != nil || bytes.Count(answers, []byte("HTTP/1.1 200 OK\r\n")) != 3 {
		t.Errorf("%d bytes, %v", len(answers), err)
	}
	if got := s.Score(); got.LeastGap != (Extreme[time.Duration]{0, h0}) || got.MostInFlight.Value != 1 {
		t.Errorf("gap %v, in flight %v", got.LeastGap, got.MostInFlight)
	}
}

func TestGapOfAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hostTally
		p := policy{delay: time.Second}
		visit := func(robots bool, wait, takes time.Duration) verdict {
			time.Sleep(wait) // in the test's own time
			v := h.begin(time.Now(), robots, p)
			time.Sleep(takes)
			h.end(time.Now(), 200, robots, p)
			return v
		}
		visit(true, 0, time.Second)
		if v := visit(false, 300*time.Millisecond, 500*time.Millisecond); v != (verdict{}) {
			t.Errorf("the first page is reproached with %+v", v)
		}
		if v := visit(false, 495*time.Millisecond, 0); v.hasty {
			t.Error("995 ms from start to start count as hasty, within the slack of a second")
		}
		if v := visit(false, 900*time.Millisecond, 0); !v.hasty {
			t.Error("900 ms from start to start do not count as hasty")
		}
		if got := h.state(time.Now()); got.gap != 300*time.Millisecond || got.start != 900*time.Millisecond ||
			got.mostIn != 1 {
			t.Errorf("gap %v, start to start %v, in flight %d", got.gap, got.start, got.mostIn)
		}
	})
}

func TestOpenConnectionsOfAHost(t *testing.T) {
	var h hostTally
	now := time.Unix(0, 0)
	after := func(ms int) time.Time { now = now.Add(time.Duration(ms) * time.Millisecond); return now }
	h.connect(1, after(0))
	h.connect(1, after(50))
	h.connect(-1, after(2)) // noticed late
	if got := h.state(after(50)).mostOpen; got != 1 {
		t.Errorf("a change of connections counts as %d at once", got)
	}
	h.connect(1, after(0))
	if got := h.state(after(20)).mostOpen; got != 2 {
		t.Errorf("two for 20 ms count as %d", got)
	}
}

func TestBursts(t *testing.T) {
	var h hostTally
	p := policy{burstEvery: 2, retryAfter: time.Second}
	now := time.Unix(100, 0)
	visit := func(wait time.Duration) string {
		now = now.Add(wait)
		v := h.begin(now, false, p)
		status := 200
		if v.throttled {
			status = 429
		}
		now = now.Add(10 * time.Millisecond)
		h.end(now, status, false, p)
		return fmt.Sprint(status, v.impatient)
	}
	for i, c := range []struct {
		wait time.Duration
		want string
	}{{0, "200 false"}, {0, "200 false"}, {0, "429 false"}, {0, "429 true"}, {980 * time.Millisecond, "429 true"},
		{time.Second, "200 false"}, {0, "200 false"}, {0, "429 false"}, {time.Second, "200 false"}} {
		if got := visit(c.wait); got != c.want {
			t.Errorf("request %d: %s, want %s", i, got, c.want)
		}
	}
}

func TestDeadHosts(t *testing.T) {
	w := New(Messy(1, 3, 30))
	s := serve(t, w, ServeOptions{Addresses: 1, DNS: true})
	for i := w.Len(); i < len(w.hosts); i++ {
		name, h := w.Host(i), w.hosts[i]
		if h.traits.has(Mute) == s.Addr(name).IsValid() {
			t.Errorf("%s: address %v", name, s.Addr(name))
		}
		if h.traits.has(Refused) {
			if nc, err := net.DialTimeout("tcp4", s.Addr(name).String(), time.Second); err == nil {
				nc.Close()
				t.Errorf("%s accepts connections", name)
			}
		}
		if h.traits.has(Hanging) {
			nc := raw(t, s, name, get(name, "/"))
			nc.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			if n, err := nc.Read(make([]byte, 1)); n > 0 || !os.IsTimeout(err) {
				t.Errorf("%s answers: %d, %v", name, n, err)
			}
		}
	}
	got := 0
	for i := range w.hosts {
		if s.Addr(w.Host(i)).IsValid() {
			got++
		}
	}
	if got != len(w.hosts)-1 {
		t.Errorf("%d of %d hosts have addresses", got, len(w.hosts))
	}
}

func TestCutAndChunkedBodies(t *testing.T) {
	cfg := Messy(1, 8, 80)
	cfg.Traits = map[Trait]int{Chunked: 500}
	s := serve(t, New(cfg), ServeOptions{})
	c := newClient(s)
	defer c.CloseIdleConnections()
	chunked, cut := 0, 0
	for i := range 8 {
		for _, path := range []string{"/", "/cut/0.html"} {
			resp, err := c.Get(fmt.Sprintf("http://%s:%d%s", s.web.Host(i), s.Port(), path))
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			chunked += len(resp.TransferEncoding)
			if errors.Is(err, io.ErrUnexpectedEOF) {
				cut++
			} else if err != nil {
				t.Error(err)
			}
		}
	}
	if chunked != 8 || cut != 8 {
		t.Errorf("%d chunked, %d cut", chunked, cut)
	}
}

func TestDNS(t *testing.T) {
	w := New(Messy(1, 3, 30))
	s := serve(t, w, ServeOptions{DNS: true})
	for _, network := range []string{"udp", "tcp"} {
		c := &dns.Client{Net: network}
		for _, q := range []struct {
			name  string
			kind  uint16
			rcode int
		}{{w.Host(1), dns.TypeA, dns.RcodeSuccess}, {"H0001.Synth.TEST", dns.TypeA, dns.RcodeSuccess},
			{w.Host(1), dns.TypeAAAA, dns.RcodeSuccess},
			{w.Host(len(w.hosts) - 1), dns.TypeA, dns.RcodeNameError}, {"nobody.synth.test", dns.TypeA, dns.RcodeNameError}} {
			m, _, err := c.Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(q.name), q.kind), s.DNS())
			if err != nil {
				t.Fatal(err)
			}
			if m.Rcode != q.rcode {
				t.Errorf("%s %s: %s", q.name, dns.TypeToString[q.kind], dns.RcodeToString[m.Rcode])
			}
			if q.kind == dns.TypeA && q.rcode == dns.RcodeSuccess {
				if a := m.Answer[0].(*dns.A); a.A.String() != s.Addr(q.name).Addr().String() || a.Hdr.Ttl != ttl {
					t.Errorf("%s is at %v", q.name, a)
				}
			}
		}
	}
	if got := s.Score().DNS; got != 10 {
		t.Errorf("%d questions counted", got)
	}
}

func TestControl(t *testing.T) {
	s := serve(t, New(Clean(1, 2, 10)), ServeOptions{Addresses: 1})
	c := newClient(s)
	defer c.CloseIdleConnections()
	fetch(t, s, c, "h0001.synth.test", "/robots.txt")
	var score Score
	_, body := fetch(t, s, c, "h0000.synth.test", "/.synth/score")
	if err := json.Unmarshal(body, &score); err != nil || score.Requests != 1 || score.Truth == 0 {
		t.Errorf("%v: %s", err, body)
	}
	fetch(t, s, c, "h0000.synth.test", "/.synth/reset")
	if got := s.Score(); got.Requests != 0 {
		t.Errorf("%d requests after a reset", got.Requests)
	}
}

func TestCloseEndsHangingConnections(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := New(Messy(1, 2, 10))
	s, err := Serve(ctx, w, ServeOptions{Addresses: 1, DNS: true})
	if err != nil {
		t.Fatal(err)
	}
	name := w.Host(w.Len() + int(Hanging-Shut))
	nc := raw(t, s, name, get(name, "/"))
	for s.tally.kinds[Page].Load() == 0 { // until the request is being served
		<-time.After(time.Millisecond)
	}
	cancel()
	if _, err := nc.Read(make([]byte, 1)); err == nil {
		t.Error("a hanging connection survives the end of the server")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzRequest(f *testing.F) {
	w := New(Messy(1, 3, 30))
	for _, seed := range []string{get("h0000.synth.test", "/"), "HEAD http://h0001.synth.test:80/go/3 " +
		"HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET  \r\n\r\n",
		get("h0002.synth.test", "/%7Epeople/wiki%20page-9.htm?copy=1")} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		end := headEnd(data)
		var r request
		if end == 0 || r.parse(data[:end]) != nil {
			return
		}
		if host, ok := w.hostOf(string(r.host)); ok {
			ref := w.locate(host, r.target)
			p := writer{w: w, port: 80}
			if ref.Kind != Large {
				p.answer(ref, string(r.target))
			}
			w.forbids(host, r.target)
		}
	})
}
