package crawl

import (
	"container/list"
	"context"
	"sync"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/content/render"
)

// A resourceCache has the resources that pages requested last, up to size bytes.
type resourceCache struct {
	size int64

	mu    sync.Mutex // guards the fields below
	byKey map[string]*list.Element
	order list.List // of cachedResource, the one used last first
	used  int64
}

type cachedResource struct {
	key    string
	answer *render.Response
}

func (r *cachedResource) cost() int64 { return int64(len(r.answer.Body)+len(r.key)) + 1<<10 }

// get returns a resource; nil if it is not cached. The caller must not change it.
func (c *resourceCache) get(key string) *render.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cachedResource).answer
}

func (c *resourceCache) put(key string, a *render.Response) {
	r := &cachedResource{key, a}
	if r.cost() > c.size/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[string]*list.Element{}
	}
	if e := c.byKey[key]; e != nil {
		c.remove(e)
	}
	c.byKey[key] = c.order.PushFront(r)
	for c.used += r.cost(); c.used > c.size; {
		c.remove(c.order.Back())
	}
}

func (c *resourceCache) remove(e *list.Element) {
	r := c.order.Remove(e).(*cachedResource)
	delete(c.byKey, r.key)
	c.used -= r.cost()
}

// hostGates limits the requests to each host at once. The zero value is ready.
type hostGates struct {
	mu      sync.Mutex // guards the fields below
	gates   map[string]*hostGate
	avoided *bounded.Recent[string, time.Time]
}

type hostGate struct {
	users int // requests that are within, or wait
	slots chan struct{}
}

// enter waits until the host may get a request, and returns the function that ends it. most applies if the host has no
// request.
func (g *hostGates) enter(ctx context.Context, host string, most int) (leave func(), err error) {
	g.mu.Lock()
	if g.gates == nil {
		g.gates = map[string]*hostGate{}
	}
	h := g.gates[host]
	if h == nil {
		h = &hostGate{slots: make(chan struct{}, most)}
		g.gates[host] = h
	}
	h.users++
	g.mu.Unlock()
	left := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(g.gates, host)
		}
	}
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots; left() }, nil
	case <-ctx.Done():
		left()
		return nil, ctx.Err()
	}
}

const maxAvoided = 1 << 12

// avoid makes avoids return true until the given time.
func (g *hostGates) avoid(host string, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.avoided == nil {
		g.avoided = bounded.NewRecent[string, time.Time](maxAvoided)
	}
	g.avoided.Put(host, until)
}

func (g *hostGates) avoids(host string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.avoided == nil {
		return false
	}
	until, _ := g.avoided.Get(host)
	return until.After(now)
}
