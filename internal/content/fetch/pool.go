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

// A site is whom connections are kept for: a host key and whether TLS is spoken.
type site struct {
	tls   bool
	host  string
	proxy *proxy
}

// A pool keeps idle connections, and keeps to the number that a host may have.
type pool struct {
	perHost      int         // open at once; 0 for no limit
	maxIdle      int         // all hosts together
	socketWanted func() bool // somebody waits for a socket, so that none is kept idle

	mu      sync.Mutex
	hosts   map[site]*siteConns
	idle    idleList
	domains idleGroups[string]
	addrs   idleGroups[netip.Addr]
	timer   *time.Timer // fires when the oldest has been idle for too long
	closed  bool
}

// siteConns are a site's connections. It is forgotten when there are none.
type siteConns struct {
	idle    []*conn // the last one was used last
	open    int     // idle, in use or being opened
	waiting []chan *conn
}

// pass gives who waits first a connection, or nil for leave to open one. It reports whether anybody waits.
func (h *siteConns) handOver(c *conn) bool {
	if len(h.waiting) == 0 {
		return false
	}
	h.waiting[0] <- c // it has room
	h.waiting = slices.Delete(h.waiting, 0, 1)
	return true
}

// idlePerHost is how many idle connections of a host are kept where it may have any number.
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

// take returns an idle connection, or nil for leave to open one. It waits, until the deadline, where the site has all
// that it may have. The caller ends with put or drop.
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

// cancelWait ends a wait. What has been given meanwhile is passed on.
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

// release gives a connection back that can be used again.
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

// spare closes the connection that has been idle longest, and reports whether there was one.
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

// discard says that one connection fewer is open.
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

// addIdle adds an idle connection as the newest. It takes out and returns those that are too many: of its domain, of its
// server, or of all.
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

// evict takes an idle connection out of the pool.
func (p *pool) evict(c *conn) *conn {
	h := p.hosts[c.site]
	h.idle = slices.DeleteFunc(h.idle, func(other *conn) bool { return other == c })
	p.removeIdle(c)
	p.dropped(c.site, h)
	return c
}

// arm has the timer fire when the oldest has been idle for too long.
func (p *pool) setTimer() {
	left := time.Until(p.idle.oldest.idle.Add(idleTimeout))
	if p.timer == nil {
		p.timer = time.AfterFunc(left, p.expire)
	} else {
		p.timer.Reset(left)
	}
}

// expire closes what has been idle for too long.
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

// close closes what is idle, now and later.
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
