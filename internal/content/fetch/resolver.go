package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const (
	maxNames    = 1 << 16          // in the cache
	systemTTL   = 5 * time.Minute  // the system's resolver does not return TTLs
	negativeTTL = 30 * time.Second // of a name that does not exist
	failureTTL  = time.Second      // of a failed lookup
	// of a failed lookup behind a proxy, since possibly only the proxy can resolve names
	proxiedFailureTTL = time.Minute
	maxAddresses      = 16 // per address family
)

// A Resolver looks up a name like a [net.Resolver].
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// A lookup queries the addresses of a name. They are valid for ttl.
type lookup func(ctx context.Context, name string) (addrs []netip.Addr, ttl time.Duration, err error)

// A resolver caches lookups, including failures. Concurrent requests for a name share one lookup, which continues even
// if they are canceled.
type resolver struct {
	ctx     context.Context
	lookup  lookup
	timeout time.Duration
	// waits until this machine has a free socket
	waitForResources func(ctx context.Context, err error, wait time.Duration) bool
	failureTTL       time.Duration // TTL of a failure
	now              func() time.Time
	max              int
	slots            chan struct{}             // one slot per concurrent lookup; nil: no limit
	limiter          *rate.Limiter             // rate limit of lookups; nil: none
	lastFound        atomic.Pointer[time.Time] // time of the last successful lookup; nil: none

	mu    sync.Mutex // guards names and the entries' expires
	names map[string]*entry
}

type entry struct {
	done    chan struct{} // closed when the fields below are set
	addrs   []netip.Addr  // not empty if err is nil
	err     error
	expires time.Time // zero during the lookup
}

func newResolver(ctx context.Context, cfg Config) *resolver {
	r := &resolver{ctx: ctx, lookup: lookupBy(net.DefaultResolver), timeout: cfg.ConnectTimeout, failureTTL: failureTTL,
		now:   cfg.Now,
		max:   maxNames,
		names: make(map[string]*entry), waitForResources: func(context.Context, error, time.Duration) bool { return false }}
	if cfg.Lookups > 0 {
		r.slots = make(chan struct{}, cfg.Lookups)
	}
	if cfg.LookupRate > 0 {
		r.limiter = rate.NewLimiter(rate.Limit(cfg.LookupRate), 1)
	}
	if cfg.Resolver != nil {
		r.lookup = lookupBy(cfg.Resolver)
	} else if cfg.DNSServer != "" {
		server := &nameServer{addr: cfg.DNSServer, timeout: cfg.ConnectTimeout / (attempts + 1)}
		r.lookup = server.lookup
	}
	return r
}

func (r *resolver) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	e := r.entry(strings.ToLower(name))
	select {
	case <-e.done:
		return e.addrs, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// entry returns a valid entry of a name. If there is none, it starts a lookup and returns its entry.
func (r *resolver) entry(name string) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.names[name]; e != nil && (e.expires.IsZero() || r.now().Before(e.expires)) {
		return e
	}
	r.makeRoom()
	e := &entry{done: make(chan struct{})}
	r.names[name] = e
	go r.fill(name, e)
	return e
}

// known reports whether the cache has unexpired addresses of a name.
func (r *resolver) known(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.names[name]
	return e != nil && r.now().Before(e.expires) && e.err == nil
}

func (r *resolver) fill(name string, e *entry) {
	addrs, ttl, err := r.lookUp(r.ctx, name)
	if err != nil {
		ttl = r.failureTTL
		if isNotFound(err) {
			ttl = negativeTTL
		}
	}
	r.mu.Lock()
	e.addrs, e.err, e.expires = addrs, err, r.now().Add(ttl)
	r.mu.Unlock()
	close(e.done)
}

// lookUp waits for a slot and looks a name up. It retries while this machine has no free socket.
func (r *resolver) lookUp(ctx context.Context, name string) (addrs []netip.Addr, ttl time.Duration, err error) {
	if r.slots != nil {
		select {
		case r.slots <- struct{}{}:
			defer func() { <-r.slots }()
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	if r.limiter != nil {
		if err := r.limiter.Wait(ctx); err != nil {
			return nil, 0, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	for wait := minRetryWait; ; wait = min(2*wait, maxRetryWait) {
		addrs, ttl, err = r.lookup(ctx, name)
		if err == nil {
			now := r.now()
			r.lastFound.Store(&now)
		}
		if err == nil || !isExhausted(err) || !r.waitForResources(ctx, err, wait) {
			return addrs, ttl, err
		}
	}
}

// lookUpUncached looks a name up without the cache.
func (r *resolver) lookUpUncached(ctx context.Context, name string) ([]netip.Addr, error) {
	addrs, _, err := r.lookUp(ctx, name)
	return addrs, err
}

// forgetFailures removes failed lookups from the cache.
func (r *resolver) forgetFailures() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, e := range r.names {
		if !e.expires.IsZero() && e.err != nil {
			delete(r.names, name)
		}
	}
}

// makeRoom removes the entry with the earliest expiry from a few random ones.
func (r *resolver) makeRoom() {
	if len(r.names) < r.max {
		return
	}
	victim, soonest, looked := "", time.Time{}, 0
	for name, e := range r.names {
		if !e.expires.IsZero() && (victim == "" || e.expires.Before(soonest)) {
			victim, soonest = name, e.expires
		}
		if looked++; looked == 16 && victim != "" {
			break
		}
	}
	delete(r.names, victim)
}

func isNotFound(err error) bool {
	de, ok := errors.AsType[*net.DNSError](err)
	return ok && de.IsNotFound
}

func notFound(name string) error {
	return &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// lookupBy preserves the order of a resolver's addresses, since the system's resolver sorts them by its routes.
func lookupBy(r Resolver) lookup {
	return func(ctx context.Context, name string) ([]netip.Addr, time.Duration, error) {
		found, err := r.LookupNetIP(ctx, "ip", name)
		addrs := make([]netip.Addr, 0, len(found))
		for _, a := range found {
			addrs = append(addrs, a.Unmap())
		}
		if err == nil && len(addrs) == 0 {
			err = notFound(name)
		}
		return addrs, systemTTL, err
	}
}
