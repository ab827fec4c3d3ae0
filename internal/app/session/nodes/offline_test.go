package nodes

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"kumo/internal/app/job"
	"kumo/internal/lab/synthweb"
)

// A relay is the connection of one node to the web, which the test can interrupt.
type relay struct {
	t        *testing.T
	at, to   string
	mu       sync.Mutex // guards below
	listener net.Listener
	conns    map[net.Conn]bool
}

func newRelay(t *testing.T, address, to string) *relay {
	_, port, err := net.SplitHostPort(to)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{t: t, at: net.JoinHostPort(address, port), to: to}
	r.connect()
	t.Cleanup(r.cut)
	return r
}

func (r *relay) connect() {
	l, err := net.Listen("tcp", r.at)
	if err != nil {
		r.t.Skipf("no loopback addresses but one here: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener, r.conns = l, map[net.Conn]bool{}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go r.pass(l, conn)
		}
	}()
}

func (r *relay) pass(l net.Listener, conn net.Conn) {
	defer conn.Close()
	server, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer server.Close()
	r.mu.Lock()
	if r.listener != l {
		r.mu.Unlock()
		return
	}
	r.conns[conn] = true
	r.mu.Unlock()
	go func() {
		_, _ = io.Copy(server, conn) // either end may close first
		server.Close()
	}()
	_, _ = io.Copy(conn, server)
	r.mu.Lock()
	delete(r.conns, conn)
	r.mu.Unlock()
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener == nil {
		return
	}
	r.listener.Close()
	r.listener = nil
	for conn := range r.conns {
		conn.Close()
	}
}

// An offline node reports it, keeps its hosts, and abandons none of them; the others do not take them over. It resumes
// by itself.
func TestANodeIsOffline(t *testing.T) { underEach(t, aNodeIsOffline) }

func aNodeIsOffline(t *testing.T, strategy string) {
	web, err := synthweb.Serve(t.Context(), synthweb.New(synthweb.Clean(11, 30, 600)),
		synthweb.ServeOptions{DNS: true, Addresses: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = web.Close() })
	seed, err := url.Parse(web.SeedURLs()[0])
	if err != nil {
		t.Fatal(err)
	}
	address := map[string]string{"shard": "127.44.7.1", "hub": "127.44.7.2"}[strategy]
	line := newRelay(t, address, net.JoinHostPort("127.0.0.1", seed.Port()))
	c := newCluster(t, web)
	c.strategy = strategy
	c.tune = func(j *job.Job) {
		if filepath.Base(j.Dir) == "a" {
			j.Fetch.Resolve = []string{"*:*:" + address}
		}
	}
	a, b := c.start("a"), c.start("b")
	c.members(2)
	c.midway(100)
	// A node that never reached a host cannot know that it is offline.
	c.eventually("five hosts have answered a", func() bool {
		return a.Session() != nil && a.Session().Engine.Reach().Answered >= 5
	})
	ofA, ofB := a.Session(), b.Session() // they are nil when the crawl is done
	owned := ofA.Frontier.Counts()
	line.cut()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("a: before the cut %+v, now %+v, reach %+v; b: %+v", owned, ofA.Frontier.Counts(), ofA.Engine.Reach(),
				ofB.Frontier.Counts())
		}
	})
	c.eventually("a says that it is offline", func() bool {
		all, err := c.control.Cluster(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range all.Nodes {
			if n.Name == "b" && n.CutOff > 0 {
				t.Fatal("b says that it is offline")
			}
			if n.Name == "a" && n.CutOff > 0 {
				return true
			}
		}
		return false
	})
	c.further(web.Requests() + 20) // by the other node
	least := owned.URLs / 2
	if strategy == "hub" { // it may move hosts to b
		least = 1
	}
	if now := a.Session().Frontier.Counts(); now.URLs < max(least, 1) {
		t.Errorf("%d URLs are pending at the node that is offline, before %d", now.URLs, owned.URLs)
	}
	if reach := a.Session().Engine.Reach(); reach.Abandoned > 0 {
		t.Errorf("%d hosts are given up", reach.Abandoned)
	}
	line.connect()
	c.goOn(a, b)
	c.ends(nil, a, b)
	if score := web.Score(); score.Missing > 0 || score.MostInFlight.Value != 1 {
		t.Errorf("the servers saw:\n%s", score)
	}
}
