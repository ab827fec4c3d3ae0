package synthweb

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// ServeOptions configure a server.
type ServeOptions struct {
	// number of loopback addresses for hosts with names (default: as many as hosts, at most 256); 1: 127.0.0.1
	Addresses     int
	Port          int          // the same on all addresses; 0: a free one
	DNS           bool         // answer DNS queries, too
	PerConnection int          // answers after which a connection is closed; 0: never
	Truth         TruthOptions // settings of the crawl that is scored

	// addresses to serve on instead of loopback ones, DNS on the first; not for hosts without names
	On  []netip.Addr
	Log bool // keep each request for Server.Log; some hundred bytes each
}

// A Server serves a web on loopback. It runs until Close is called or the context given to Serve is done.
type Server struct {
	// Fallback is the reason why all hosts share 127.0.0.1 despite the options; nil if they do not. Some systems have
	// no other loopback address by default.
	Fallback error

	web     *Web
	opts    ServeOptions
	tally   *tally
	truth   func() *Truth
	addrs   []netip.Addr
	port    int
	doors   []listener
	tls     *tls.Config // nil without TLS
	dns     *dnsServer
	benches sync.Pool
	log     *requestLog // nil without a log
	running sync.WaitGroup
	closed  chan struct{}
	slowed  atomic.Pointer[delayConfig]

	mu    sync.Mutex // guards the following fields
	conns map[net.Conn]struct{}
	stop  func() bool // detaches the server from the context
}

// Serve starts serving w.
func Serve(ctx context.Context, w *Web, opts ServeOptions) (*Server, error) {
	s := &Server{web: w, opts: opts, tally: newTally(w), closed: make(chan struct{}), conns: make(map[net.Conn]struct{})}
	s.truth = sync.OnceValue(func() *Truth { return w.Truth(opts.Truth) })
	if w.cfg.TLS {
		var err error
		if s.tls, err = serverTLS(); err != nil {
			return nil, err
		}
	}
	if opts.Log {
		s.log = new(requestLog)
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	s.benches.New = func() any { return &responder{page: writer{w: w, port: s.port}} }
	if opts.DNS {
		var err error
		if s.dns, err = serveDNS(s, s.addrs[0]); err != nil {
			s.closeListeners()
			return nil, err
		}
	}
	for _, d := range s.doors {
		s.running.Go(func() { s.accept(d) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = context.AfterFunc(ctx, func() { _ = s.Close() })
	return s, nil
}

func (s *Server) accept(d listener) {
	for {
		nc, err := d.Accept()
		if err != nil {
			select {
			case <-s.closed:
				return
			case <-time.After(10 * time.Millisecond): // probably out of file descriptors
				continue
			}
		}
		s.running.Go(func() { s.serveConn(nc, d.host) })
	}
}

func (s *Server) serveConn(nc net.Conn, host int) {
	s.mu.Lock()
	s.conns[nc] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, nc)
		s.mu.Unlock()
	}()
	select {
	case <-s.closed:
		nc.Close()
		return
	default:
	}
	s.tally.counts[connections].Add(1)
	c := &conn{s: s, net: nc, host: -1}
	if s.tls != nil {
		c.net = tls.Server(nc, s.tls)
	}
	if host >= 0 {
		c.countFor(host)
	}
	c.serve()
}

// Close closes all connections and waits for the server's goroutines. It may be called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
		s.closeListeners()
		if s.dns != nil {
			s.dns.close()
		}
		for nc := range s.conns {
			nc.Close()
		}
	}
	if s.stop != nil {
		s.stop()
	}
	s.mu.Unlock()
	s.running.Wait()
	return nil
}

// Port returns the port on which all hosts listen.
func (s *Server) Port() int { return s.port }

// TLS reports whether the server uses TLS, with a self-signed certificate.
func (s *Server) TLS() bool { return s.tls != nil }

// DNS returns the address and port of the DNS server; "" without one.
func (s *Server) DNS() string {
	if s.dns == nil {
		return ""
	}
	return s.dns.addr
}

// SeedURLs returns Web.Seeds with the server's port.
func (s *Server) SeedURLs() []string { return []string{s.web.URL(Ref{}, s.port)} }

// Score returns the score since the start or the last Reset, judged by the truth of its options. The first call
// computes the truth.
func (s *Server) Score() Score { return s.ScoreBy(s.truth()) }

// ScoreBy returns the score, judged by another truth of the same web.
func (s *Server) ScoreBy(truth *Truth) Score { return s.tally.score(truth, time.Now()) }

// Requests returns the number of requests since the start or the last Reset. It is cheap.
func (s *Server) Requests() (n int64) {
	for i := range s.tally.kinds {
		n += s.tally.kinds[i].Load()
	}
	return n
}

// A delayConfig delays answers, except for those to the first requests.
type delayConfig struct {
	but   int64
	later time.Duration
}

// SetDelay delays all answers by later, except those to the first but requests, as counted by Requests. A test can thus
// meet a crawl before it ends. It applies until the next call; 0 removes the delay.
func (s *Server) SetDelay(but int64, later time.Duration) { s.slowed.Store(&delayConfig{but, later}) }

// extraDelay returns the additional delay of an answer.
func (s *Server) extraDelay() time.Duration {
	if slow := s.slowed.Load(); slow != nil && slow.later > 0 && s.Requests() > slow.but {
		return slow.later
	}
	return 0
}

// Reset resets the score.
func (s *Server) Reset() { s.tally.reset(time.Now()) }
