package fetch

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// A site identifies the connections that may serve a request: host key, TLS, and proxy.
type site struct {
	tls   bool
	host  string
	proxy *proxy
}

// A pool keeps idle connections, and limits the connections of each host.
type pool struct {
	perHost      int         // open at a time; 0: no limit
	maxIdle      int         // for all hosts
	socketWanted func() bool // a caller waits for a socket, so no connection is kept idle

	mu      sync.Mutex
	hosts   map[site]*siteConns
	idle    idleList
	domains idleGroups[string]
	addrs   idleGroups[netip.Addr]
	timer   *time.Timer // fires when the oldest connection has been idle for too long
	closed  bool
}

// siteConns are a site's connections. The entry is removed when there are none.
type siteConns struct {
	idle    []*conn // last: most recently used
	open    int     // idle, in use or being opened
	waiting []chan *conn
}

// handOver gives the first waiter a connection, or nil as permission to open one. It returns false if there is no
// waiter.
func (h *siteConns) handOver(c *conn) bool {
	if len(h.waiting) == 0 {
		return false
	}
	h.waiting[0] <- c // buffered
	h.waiting = slices.Delete(h.waiting, 0, 1)
	return true
}

// idlePerHost is the number of idle connections kept for a host if perHost is 0.
const idlePerHost = 8

func newPool(perHost, maxIdle int) *pool {
	return &pool{
		perHost:      perHost,
		maxIdle:      maxIdle,
		socketWanted: func() bool { return false },
		hosts:        make(map[site]*siteConns),
		domains:      newIdleGroups[string](ofDomain),
		addrs:        newIdleGroups[netip.Addr](ofAddr),
	}
}

// acquire returns an idle connection, or nil as permission to open one. If the site has its maximum of connections, it
// waits until the deadline. The caller must call release or discard.
func (p *pool) acquire(ctx context.Context, s site, deadline time.Time) (*conn, error) {
	p.mu.Lock()
	h := p.hosts[s]
	if h == nil {
		h = &siteConns{}
		p.hosts[s] = h
	}
	if n := len(h.idle); n > 0 {
		c := h.idle[n-1]
		h.idle = h.idle[:n-1]
		p.removeIdle(c)
		p.mu.Unlock()
		return c, nil
	}
	if p.perHost == 0 || h.open < p.perHost {
		h.open++
		p.mu.Unlock()
		return nil, nil
	}
	turn := make(chan *conn, 1)
	h.waiting = append(h.waiting, turn)
	p.mu.Unlock()
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	select {
	case c := <-turn:
		return c, nil
	case <-late.C:
		p.cancelWait(s, turn)
		return nil, errTimeout
	case <-ctx.Done():
		p.cancelWait(s, turn)
		return nil, ctx.Err()
	}
}

// cancelWait ends a wait. A connection that was handed over at the same time is released.
func (p *pool) cancelWait(s site, turn chan *conn) {
	p.mu.Lock()
	h := p.hosts[s]
	if h != nil {
		if i := slices.Index(h.waiting, turn); i >= 0 {
			h.waiting = slices.Delete(h.waiting, i, i+1)
			p.mu.Unlock()
			return
		}
	}
	p.mu.Unlock()
	if c := <-turn; c != nil {
		p.release(c)
	} else {
		p.discard(s)
	}
}

// release returns a reusable connection to the pool.
func (p *pool) release(c *conn) {
	c.reused = true
	p.mu.Lock()
	h := p.hosts[c.site]
	switch {
	case !p.closed && h.handOver(c):
		p.mu.Unlock()
		return
	case p.closed || len(h.idle) >= cmp.Or(p.perHost, idlePerHost) || p.maxIdle <= 0 || p.socketWanted():
		p.mu.Unlock()
		c.Close()
		p.discard(c.site)
		return
	}
	h.idle = append(h.idle, c)
	surplus := p.addIdle(c)
	p.mu.Unlock()
	closeAll(surplus...)
}

// closeOldest closes the connection that has been idle longest. It returns false if there is none.
func (p *pool) closeOldest() bool {
	p.mu.Lock()
	c := p.idle.oldest
	if c != nil {
		p.evict(c)
	}
	p.mu.Unlock()
	closeAll(c)
	return c != nil
}

// discard records that a connection was closed.
func (p *pool) discard(s site) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropped(s, p.hosts[s])
}

func (p *pool) dropped(s site, h *siteConns) {
	if h.handOver(nil) {
		return
	}
	if h.open--; h.open == 0 {
		delete(p.hosts, s)
	}
}

// addIdle adds a connection to the lists. It removes and returns the connections that exceed a limit: of the domain, of
// the server, or of the pool.
func (p *pool) addIdle(c *conn) (surplus []*conn) {
	c.idle = time.Now()
	p.idle.push(c)
	if p.idle.n == 1 {
		p.setTimer()
	}
	domain, addr := p.domains.add(c.domain, c), p.addrs.add(c.server(), c)
	if domain.n > maxIdlePer {
		surplus = append(surplus, p.evict(domain.oldest))
	}
	if addr.n > maxIdlePer {
		surplus = append(surplus, p.evict(addr.oldest))
	}
	if p.idle.n > p.maxIdle {
		surplus = append(surplus, p.evict(p.idle.oldest))
	}
	return surplus
}

func (p *pool) removeIdle(c *conn) {
	p.idle.remove(c)
	p.domains.remove(c.domain, c)
	p.addrs.remove(c.server(), c)
}

// evict removes an idle connection from the pool.
func (p *pool) evict(c *conn) *conn {
	h := p.hosts[c.site]
	h.idle = slices.DeleteFunc(h.idle, func(other *conn) bool { return other == c })
	p.removeIdle(c)
	p.dropped(c.site, h)
	return c
}

// setTimer sets the timer to the time when the oldest connection has been idle for too long.
func (p *pool) setTimer() {
	left := time.Until(p.idle.oldest.idle.Add(idleTimeout))
	if p.timer == nil {
		p.timer = time.AfterFunc(left, p.expire)
	} else {
		p.timer.Reset(left)
	}
}

// expire closes the connections that have been idle for too long.
func (p *pool) expire() {
	p.mu.Lock()
	var old []*conn
	for p.idle.oldest != nil && time.Since(p.idle.oldest.idle) >= idleTimeout {
		old = append(old, p.evict(p.idle.oldest))
	}
	if p.idle.oldest != nil {
		p.setTimer()
	}
	p.mu.Unlock()
	closeAll(old...)
}

// close closes all idle connections, and all that are released later.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	var all []*conn
	for p.idle.oldest != nil {
		all = append(all, p.evict(p.idle.oldest))
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	closeAll(all...)
}

func closeAll(conns ...*conn) {
	for _, c := range conns {
		if c != nil {
			c.Close()
		}
	}
}

var _ net.Conn = (*conn)(nil)
