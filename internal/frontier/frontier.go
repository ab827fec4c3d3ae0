package frontier

import (
	"container/heap"
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// ErrDry is what Next returns when nothing waits and nothing is under way.
var ErrDry = errors.New("the frontier is empty")

// Config sets how hosts are treated.
type Config struct {
	Hosts     int           // hosts worked on at once; 64
	PerHost   int           // connections to one host; 1
	Delay     time.Duration // from the end of an answer to the host's next request
	AddrDelay time.Duration // between requests to one server address that several hosts share
	MaxDelay  time.Duration // how much of a Crawl-delay is obeyed; 30s, negative: nothing
	RetryWait time.Duration // the first wait after a failure, doubled with each; 1s
	MaxWait   time.Duration // the longest wait, asked for by a server or not; 1h
	SlowAfter time.Duration // a host whose answer took longer is a suspect; 5s
	Now       func() time.Time
}

func (c Config) withDefaults() Config {
	def(&c.Hosts, 64)
	def(&c.PerHost, 1)
	def(&c.MaxDelay, 30*time.Second)
	def(&c.RetryWait, time.Second)
	def(&c.MaxWait, time.Hour)
	def(&c.SlowAfter, 5*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func def[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// A Frontier holds the URLs that wait. Its methods may be called by many goroutines at once.
type Frontier struct {
	cfg  Config
	lead chan struct{} // held by the one caller of Next that waits for a time to come; the others wait for it
	wake chan struct{} // tells the leader to look again

	mu       sync.Mutex // guards all below
	hosts    map[string]*host
	heaps    [numClasses]hostHeap
	addrs    map[netip.Addr]*address
	seq      uint64
	waiting  int // items
	inflight int // visits
	active   int // hosts with visits
	doubtful int // of these, suspects
	backing  map[*host]struct{}
}

// New returns an empty frontier.
func New(cfg Config) *Frontier {
	return &Frontier{
		cfg:     cfg.withDefaults(),
		lead:    make(chan struct{}, 1),
		wake:    make(chan struct{}, 1),
		hosts:   make(map[string]*host),
		addrs:   make(map[netip.Addr]*address),
		backing: make(map[*host]struct{}),
	}
}

// A Visit is one URL of a host, handed to one worker, who gives it back with Done or Postpone.
type Visit struct {
	Item
	Host string

	Started time.Time // when it was handed out

	host    *host
	due     time.Time // the host's next time when it was handed out
	set     time.Time // its next time as it was set then
	suspect bool
}

// Push adds items of one host.
func (f *Frontier) Push(key string, items ...Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.host(key)
	for i := range items {
		f.enqueue(h, items[i])
	}
	f.place(h)
}

func (f *Frontier) host(key string) *host {
	h := f.hosts[key]
	if h == nil {
		f.seq++
		h = &host{key: strings.Clone(key), in: idle, seq: f.seq, next: f.cfg.Now()}
		key = h.key
		f.hosts[key] = h
	}
	return h
}

// enqueue keeps an item that came before in its place, unless it comes late.
func (f *Frontier) enqueue(h *host, it Item) {
	if it.seq == 0 || it.Late {
		f.seq++
		it.seq, it.rank = f.seq, it.Depth
		h.deepest = max(h.deepest, it.rank)
	}
	if it.Late {
		it.rank, it.Late = h.deepest, false
	}
	f.waiting++
	if it.Robots != "" {
		h.robots = append(h.robots, &it)
		return
	}
	heap.Push(&h.waiting, &it)
}

// place puts a host where it belongs after a change, and wakes the leader if that may matter to it.
func (f *Frontier) place(h *host) {
	if h.in != idle {
		heap.Remove(&f.heaps[h.in], h.index)
	}
	h.in = h.class(f.cfg.PerHost)
	if h.in == idle {
		if h.inflight == 0 {
			delete(f.backing, h)
		}
		return
	}
	heap.Push(&f.heaps[h.in], h)
	f.signal()
}

func (f *Frontier) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Next waits for a host whose time has come and hands out a URL of it. It returns ErrDry when there is nothing more to come,
// or the context's error.
func (f *Frontier) Next(ctx context.Context) (*Visit, error) {
	select {
	case f.lead <- struct{}{}:
		defer func() { <-f.lead }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, wait, err := f.poll()
		if v != nil || err != nil {
			return v, err
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-f.wake:
		}
	}
}

// poll hands out a visit, or says how long to wait for one.
func (f *Frontier) poll() (*Visit, time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == 0 && f.inflight == 0 {
		return nil, 0, ErrDry
	}
	h := f.first()
	if h == nil {
		return nil, time.Hour, nil
	}
	now := f.cfg.Now()
	if wait := h.next.Sub(now); wait > 0 {
		return nil, wait, nil
	}
	return f.handOut(h, now), 0, nil
}

// first is the host with the least next time in the classes that may have a place.
func (f *Frontier) first() *host {
	var best *host
	for c, q := range f.heaps {
		if len(q) == 0 || !f.hasPlace(class(c)) {
			continue
		}
		if best == nil || q[0].next.Before(best.next) {
			best = q[0]
		}
	}
	return best
}

func (f *Frontier) hasPlace(c class) bool {
	switch c {
	case sound:
		return f.active < f.cfg.Hosts
	case suspect:
		return f.active < f.cfg.Hosts && f.doubtful < max(1, f.cfg.Hosts/4)
	}
	return true
}

func (f *Frontier) handOut(h *host, now time.Time) *Visit {
	v := &Visit{Item: *h.take(), Host: h.key, host: h, due: h.next, Started: now, suspect: h.in == suspect}
	f.waiting--
	f.inflight++
	if h.inflight == 0 {
		f.active++
	}
	if v.suspect {
		f.doubtful++
	}
	h.inflight++
	// A second connection keeps the delay, too: from the start of the request before it, as that has not ended.
	h.next = now.Add(f.delay(h))
	v.set = h.next
	delete(f.backing, h)
	f.place(h)
	return v
}

// back ends a visit; the caller places the host afterwards.
func (f *Frontier) back(v *Visit) {
	h := v.host
	f.inflight--
	h.inflight--
	if h.inflight == 0 {
		f.active--
	}
	if v.suspect {
		f.doubtful--
	}
	f.seq++
	h.seq = f.seq
	f.signal()
}

func (f *Frontier) delay(h *host) time.Duration { return max(f.cfg.Delay, h.delay) }
