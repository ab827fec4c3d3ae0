package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

const (
	maxNames     = 1 << 16          // in the cache
	systemTTL    = 5 * time.Minute  // the system's resolver does not tell
	negativeTTL  = 30 * time.Second // of a name that does not exist
	troubleTTL   = time.Second      // of a lookup that failed
	maxAddresses = 16               // kept of one answer's family
)

// A lookup asks for the addresses of a name; ttl says how long they hold.
type lookup func(ctx context.Context, name string) (addrs []netip.Addr, ttl time.Duration, err error)

// A resolver caches lookups, failed ones too. Those who ask for the same name at once share one lookup, which goes on when
// they lose patience.
type resolver struct {
	ctx     context.Context
	lookup  lookup
	timeout time.Duration
	now     func() time.Time
	max     int

	mu    sync.Mutex // guards names and the expiry of its entries
	names map[string]*entry
}

type entry struct {
	done    chan struct{} // closed when the fields below are set
	addrs   []netip.Addr  // at least one if err is nil
	err     error
	expires time.Time // zero while the lookup is under way
}

func newResolver(ctx context.Context, cfg Config) *resolver {
	r := &resolver{ctx: ctx, lookup: systemLookup, timeout: cfg.ConnectTimeout, now: cfg.Now, max: maxNames,
		names: make(map[string]*entry)}
	if cfg.DNSServer != "" {
		server := &nameServer{addr: cfg.DNSServer, patience: cfg.ConnectTimeout / (attempts + 1)}
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

// entry returns a name's valid entry, or one whose lookup it has started.
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

func (r *resolver) fill(name string, e *entry) {
	ctx, cancel := context.WithTimeout(r.ctx, r.timeout)
	defer cancel()
	addrs, ttl, err := r.lookup(ctx, name)
	if err != nil {
		ttl = troubleTTL
		if isNotFound(err) {
			ttl = negativeTTL
		}
	}
	r.mu.Lock()
	e.addrs, e.err, e.expires = addrs, err, r.now().Add(ttl)
	r.mu.Unlock()
	close(e.done)
}

// makeRoom drops the entry that expires soonest of a few taken at random.
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
	var de *net.DNSError
	return errors.As(err, &de) && de.IsNotFound
}

func notFound(name string) error {
	return &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// systemLookup keeps the system's order of addresses, which follows from the routes there are.
func systemLookup(ctx context.Context, name string) ([]netip.Addr, time.Duration, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	if err == nil && len(addrs) == 0 {
		err = notFound(name)
	}
	return addrs, systemTTL, err
}
