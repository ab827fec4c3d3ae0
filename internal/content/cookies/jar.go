package cookies

import (
	"cmp"
	"container/list"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Config limits a jar. The zero value works.
type Config struct {
	PerDomain int   // cookies per domain; default 50
	Bytes     int64 // memory of all cookies, with overhead; default 16 MiB

	// OnChange is called with cookies that a response has set, changed or deleted. It is not called for private
	// cookies, nor for small changes of the expiry. It may be nil, and may be called concurrently.
	OnChange func(c *Cookie)
	// Private reports whether cookies of a host are private; nil: none are
	Private func(host string) bool
	// PrivateFor reports whether cookies of a host to which c may be sent are private; nil: none are
	PrivateFor func(c *Cookie) bool
	// Configured reports whether the user has configured a cookie of c's name for a host to which c may be sent; nil:
	// none
	Configured func(c *Cookie) bool
}

// maxSent limits the bytes of a domain's cookies, since all of them may have to be sent in one request.
const maxSent = 16 << 10

// A Jar stores cookies. Its methods are safe for concurrent use; a nil Jar stores nothing.
//
// If a domain exceeds a limit, expired cookies are removed first, then cookies without Secure, then the others; within
// each group, the least recently sent go first. If all domains together exceed the limit, the least recently requested
// domain is removed.
type Jar struct {
	cfg     Config
	count   atomic.Int64 // number of cookies
	evicted atomic.Int64
	changes atomic.Uint64 // see Revision

	mu      sync.Mutex // guards the fields below
	domains map[string]*domain
	order   *list.List // of *domain, most recently requested first
	bytes   int64
}

// A domain holds the cookies of a domain, in the order in which they are sent.
type domain struct {
	name    string
	cookies []storedCookie
	element *list.Element // in Jar.order
}

type storedCookie struct {
	Cookie
	revision uint64    // of its last change
	used     time.Time // when it was last sent or set
}

// NewJar returns an empty jar.
func NewJar(cfg Config) *Jar {
	cfg.PerDomain = cmp.Or(cfg.PerDomain, 50)
	cfg.Bytes = cmp.Or(cfg.Bytes, 16<<20)
	return &Jar{cfg: cfg, domains: map[string]*domain{}, order: list.New()}
}

// Len returns the number of cookies.
func (j *Jar) Len() int64 {
	if j == nil {
		return 0
	}
	return j.count.Load()
}

// Evicted returns the number of cookies that were removed because of a limit.
func (j *Jar) Evicted() int64 {
	if j == nil {
		return 0
	}
	return j.evicted.Load()
}

// Append appends to all the cookies for a request to t, in the order in which they are sent: longer paths first, and
// older ones first for equal paths.
func (j *Jar) Append(all []Cookie, t Target, now time.Time) []Cookie {
	if j == nil || j.count.Load() == 0 {
		return all
	}
	before := len(all)
	j.mu.Lock()
	for d := range j.domainsOf(t.Host) {
		j.order.MoveToFront(d.element)
		for i := range d.cookies {
			if k := &d.cookies[i]; k.goesTo(t, now) {
				k.used = now
				all = append(all, k.Cookie)
			}
		}
	}
	j.mu.Unlock()
	slices.SortStableFunc(all[before:], func(a, b Cookie) int {
		return cmp.Or(cmp.Compare(len(b.Path), len(a.Path)), a.Created.Compare(b.Created))
	})
	return all
}

// domainsOf yields the domains with cookies that contain a host, the host itself first. An address is only in its own.
// The caller must hold mu.
func (j *Jar) domainsOf(host string) iter.Seq[*domain] {
	return func(yield func(*domain) bool) {
		for name := host; name != ""; _, name, _ = strings.Cut(name, ".") {
			if d := j.domains[name]; d != nil && !yield(d) {
				return
			}
		}
	}
}

// Revision returns the revision of the cookies for a target: it grows whenever one of them gets another value, and is 0
// if there are none. Deletions do not count.
func (j *Jar) Revision(t Target, now time.Time) (last uint64) {
	if j == nil || j.count.Load() == 0 {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for d := range j.domainsOf(t.Host) {
		for i := range d.cookies {
			if k := &d.cookies[i]; k.goesTo(t, now) {
				last = max(last, k.revision)
			}
		}
	}
	return last
}

// LastRevision returns the revision of the last change of any cookie.
func (j *Jar) LastRevision() uint64 {
	if j == nil {
		return 0
	}
	return j.changes.Load()
}

// Store stores the cookies in the Set-Cookie fields of a response from a target; secret means that all are private. It
// reports whether any was private, so that the fields must not be shown.
func (j *Jar) Store(fields []string, from Target, secret bool, now time.Time) (private bool) {
	if j == nil {
		return secret
	}
	secret = secret || j.cfg.Private != nil && j.cfg.Private(from.Host)
	private = secret
	for _, field := range fields {
		c, ok := Parse(field, from, now)
		if !ok {
			continue
		}
		c.Private = secret
		changed := j.set(&c, &from)
		if private = private || c.Private; changed && !c.Private && j.cfg.OnChange != nil {
			j.cfg.OnChange(&c)
		}
	}
	return private
}

// Import adds a cookie that this or another jar had. Of two cookies with the same key, the last one set is kept; but a
// private one is kept always.
func (j *Jar) Import(c Cookie) {
	if j != nil {
		j.set(&c, nil)
	}
}

// set stores a cookie, or deletes the stored one if the new one has expired. from is nil for a cookie from a jar. It
// reports whether the change is significant. It copies Created and Private from the replaced cookie to c.
func (j *Jar) set(c *Cookie, from *Target) (changed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if from != nil && !from.Secure && j.shadowed(c, from) {
		return false
	}
	d := j.domains[c.Domain]
	if d == nil {
		if c.expired(c.Set) {
			return false
		}
		d = &domain{name: c.Domain}
		d.element = j.order.PushFront(d)
		j.domains[c.Domain] = d
		j.bytes += int64(overhead + len(c.Domain))
	}
	i := slices.IndexFunc(d.cookies, func(k storedCookie) bool { return k.sameKey(c) })
	if i >= 0 {
		was := &d.cookies[i]
		if from == nil && (was.Private || was.Set.After(c.Set)) {
			return false
		}
		c.Created, c.Private = was.Created, c.Private || was.Private
		changed = c.Value != was.Value || c.Secure != was.Secure || expiryMoved(&was.Cookie, c)
	}
	switch {
	case c.expired(c.Set):
		if i >= 0 {
			j.drop(d, i)
		}
	case i >= 0:
		was := &d.cookies[i]
		stamp := was.revision
		if c.Value != was.Value {
			stamp = j.changes.Add(1)
		}
		j.bytes += c.size() - was.size()
		d.cookies[i] = storedCookie{c.clone(), stamp, c.Set}
	default:
		changed = true
		j.bytes += c.size()
		j.count.Add(1)
		d.cookies = append(d.cookies, storedCookie{c.clone(), j.changes.Add(1), c.Set})
		j.enforceDomainLimit(d, c.Set)
	}
	j.enforceTotalLimit(d)
	return changed
}

// expiryMoved reports whether an expiry changed significantly: by more than a tenth of the remaining time.
func expiryMoved(was, c *Cookie) bool {
	if was.Expires.IsZero() || c.Expires.IsZero() {
		return was.Expires.IsZero() != c.Expires.IsZero()
	}
	return c.Expires.Sub(was.Expires).Abs() > was.Expires.Sub(c.Set).Abs()/10
}

// shadowed reports whether a cookie set over http would hide a Secure one from the site (RFC 6265bis 5.7, step 16).
func (j *Jar) shadowed(c *Cookie, from *Target) bool {
	for d := range j.domainsOf(from.Host) {
		if slices.ContainsFunc(d.cookies,
			func(k storedCookie) bool { return k.Secure && k.Name == c.Name && k.covers(c.Path) }) {
			return true
		}
	}
	return false
}

// enforceDomainLimit removes cookies of a domain that exceed its limits.
func (j *Jar) enforceDomainLimit(d *domain, now time.Time) {
	sent := 0
	for i := range d.cookies {
		sent += len(d.cookies[i].Name) + len(d.cookies[i].Value)
	}
	for len(d.cookies) > j.cfg.PerDomain || sent > maxSent && len(d.cookies) > 1 {
		worst := 0
		for i := 1; i < len(d.cookies)-1; i++ { // not the last, which was just set
			if evictsBefore(&d.cookies[i], &d.cookies[worst], now) {
				worst = i
			}
		}
		sent -= len(d.cookies[worst].Name) + len(d.cookies[worst].Value)
		if !d.cookies[worst].expired(now) {
			j.evicted.Add(1)
		}
		j.drop(d, worst)
	}
}

// evictsBefore reports whether a is removed before b.
func evictsBefore(a, b *storedCookie, now time.Time) bool {
	if x, y := a.expired(now), b.expired(now); x != y {
		return x
	}
	if a.Secure != b.Secure {
		return b.Secure
	}
	return a.used.Before(b.used)
}

// drop removes a cookie of a domain, and the domain with its last cookie.
func (j *Jar) drop(d *domain, i int) {
	j.bytes -= d.cookies[i].size()
	j.count.Add(-1)
	if d.cookies = slices.Delete(d.cookies, i, i+1); len(d.cookies) == 0 {
		j.forget(d)
	}
}

func (j *Jar) forget(d *domain) {
	j.bytes -= int64(overhead + len(d.name))
	j.order.Remove(d.element)
	delete(j.domains, d.name)
}

// enforceTotalLimit removes the least recently requested domains while the jar exceeds its limit, except the domain at.
func (j *Jar) enforceTotalLimit(at *domain) {
	if j.bytes > j.cfg.Bytes {
		j.order.MoveToFront(at.element)
	}
	for j.bytes > j.cfg.Bytes && j.order.Len() > 1 {
		d := j.order.Back().Value.(*domain)
		for i := range d.cookies {
			j.bytes -= d.cookies[i].size()
		}
		j.count.Add(-int64(len(d.cookies)))
		j.evicted.Add(int64(len(d.cookies)))
		j.forget(d)
	}
}

// Has reports whether there are cookies that may be sent to a host, including private ones.
func (j *Jar) Has(host string) bool {
	if j == nil || j.count.Load() == 0 {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for range j.domainsOf(host) {
		return true
	}
	return false
}

// SetOnChange sets Config.OnChange. It must be called before the jar is used.
func (j *Jar) SetOnChange(changed func(c *Cookie)) {
	if j != nil {
		j.cfg.OnChange = changed
	}
}

// AppendForHost appends to all the cookies that may be sent to a host, except private ones.
func (j *Jar) AppendForHost(all []Cookie, host string) []Cookie {
	if j == nil || j.count.Load() == 0 {
		return all
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for d := range j.domainsOf(host) {
		for _, k := range d.cookies {
			if !k.Private && k.Covers(host) {
				all = append(all, k.Cookie)
			}
		}
	}
	return all
}

// AppendAll appends all cookies that are not private, in the format of [Append].
func (j *Jar) AppendAll(b []byte) []byte {
	if j == nil {
		return b
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for e := j.order.Back(); e != nil; e = e.Prev() { // so that the reader restores the same order
		for i := range e.Value.(*domain).cookies {
			if k := &e.Value.(*domain).cookies[i]; !k.Private {
				b = Append(b, &k.Cookie)
			}
		}
	}
	return b
}

// ImportAll adds the cookies that AppendAll wrote. It returns false if the data is corrupt.
func (j *Jar) ImportAll(b []byte) bool {
	for len(b) > 0 {
		c, rest, ok := Read(b)
		if !ok {
			return false
		}
		j.Import(c)
		b = rest
	}
	return true
}

// HasNamed reports whether there is a cookie with the name that may be sent to a host.
func (j *Jar) HasNamed(host, name string) bool {
	if j == nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for d := range j.domainsOf(host) {
		if slices.ContainsFunc(d.cookies, func(k storedCookie) bool { return k.Name == name && k.Covers(host) }) {
			return true
		}
	}
	return false
}
