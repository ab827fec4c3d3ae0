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

// A Config bounds a jar. Its zero value works.
type Config struct {
	PerDomain int   // cookies of a domain; default 50
	Bytes     int64 // of all cookies, with what it takes to hold them; default 16 MiB

	// OnChange is told of cookies that an answer has set, changed or deleted, but not of those that are private, and not
	// of an expiry that has moved a little; may be nil. It may be called by many goroutines at once.
	OnChange func(c *Cookie)
	// Private says of a host that what it sets is; nil: nothing is.
	Private func(host string) bool
}

// maxSent bounds the bytes of a domain's cookies, which all may have to go with a request.
const maxSent = 16 << 10

// A Jar keeps cookies. Its methods may be called by many goroutines at once; a nil Jar keeps nothing.
//
// Where a domain has more than it may, those that have expired go first, then those that were sent least lately, those
// that are not Secure before those that are. Where all together are more, the domain that was asked for least lately
// goes as a whole.
type Jar struct {
	cfg     Config
	count   atomic.Int64 // cookies
	evicted atomic.Int64
	changes atomic.Uint64 // see Stamp

	mu      sync.Mutex // guards what follows
	domains map[string]*domain
	order   *list.List // of *domain; that which was asked for last is first
	bytes   int64
}

// A domain is what is kept of one, in the order in which it is sent.
type domain struct {
	name    string
	cookies []storedCookie
	element *list.Element // in Jar.order
}

type storedCookie struct {
	Cookie
	revision uint64    // of its last change
	used     time.Time // sent, or set
}

// NewJar makes an empty one.
func NewJar(cfg Config) *Jar {
	cfg.PerDomain = cmp.Or(cfg.PerDomain, 50)
	cfg.Bytes = cmp.Or(cfg.Bytes, 16<<20)
	return &Jar{cfg: cfg, domains: map[string]*domain{}, order: list.New()}
}

// Len is how many cookies are kept.
func (j *Jar) Len() int64 {
	if j == nil {
		return 0
	}
	return j.count.Load()
}

// Evicted is how many cookies were dropped for want of room.
func (j *Jar) Evicted() int64 {
	if j == nil {
		return 0
	}
	return j.evicted.Load()
}

// Append appends the cookies that go with a request to all, in the order in which they are sent: longer paths first,
// and of those with the same path the older ones.
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

// domainsOf yields the domains with cookies that a host is in, the host itself first. An address is in no other. mu is
// held.
func (j *Jar) domainsOf(host string) iter.Seq[*domain] {
	return func(yield func(*domain) bool) {
		for name := host; name != ""; _, name, _ = strings.Cut(name, ".") {
			if d := j.domains[name]; d != nil && !yield(d) {
				return
			}
		}
	}
}

// Revision says how far the cookies have changed that go to a target: it grows whenever one of them is set to another
// value, and is 0 where there are none. Deleting one does not count.
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

// LastRevision is the stamp of the last change of any cookie.
func (j *Jar) LastRevision() uint64 {
	if j == nil {
		return 0
	}
	return j.changes.Load()
}

// Store keeps what an answer from a target sets, by its Set-Cookie fields; secret says that all of it is private. It
// reports whether something was private, so that the fields are not to be shown.
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

// Import takes a cookie in that this jar, or another, has had: of two with one place the one that was set last stays.
func (j *Jar) Import(c Cookie) {
	if j != nil {
		j.set(&c, nil)
	}
}

// set puts a cookie into its place, or deletes what is there if it has expired; from is nil where it comes from a jar.
// It reports whether that is worth telling, and sets what c has of the one whose place it takes.
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
		if from == nil && was.Set.After(c.Set) {
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

// expiryMoved reports whether an expiry is so far from the other that who goes on from that one would know it: by a tenth
// of the time that is left.
func expiryMoved(was, c *Cookie) bool {
	if was.Expires.IsZero() || c.Expires.IsZero() {
		return was.Expires.IsZero() != c.Expires.IsZero()
	}
	return c.Expires.Sub(was.Expires).Abs() > was.Expires.Sub(c.Set).Abs()/10
}

// shadowed reports whether a cookie that comes over http would take the place of a Secure one, in the site's eyes: RFC
// 6265bis 5.7, step 16.
func (j *Jar) shadowed(c *Cookie, from *Target) bool {
	for d := range j.domainsOf(from.Host) {
		if slices.ContainsFunc(
			d.cookies,
			func(k storedCookie) bool { return k.Secure && k.Name == c.Name && k.covers(c.Path) },
		) {
			return true
		}
	}
	return false
}

// enforceDomainLimit drops what a domain has too much of.
func (j *Jar) enforceDomainLimit(d *domain, now time.Time) {
	sent := 0
	for i := range d.cookies {
		sent += len(d.cookies[i].Name) + len(d.cookies[i].Value)
	}
	for len(d.cookies) > j.cfg.PerDomain || sent > maxSent && len(d.cookies) > 1 {
		worst := 0
		for i := 1; i < len(d.cookies)-1; i++ { // the last was just set
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

// evictsBefore reports whether a is to go before b.
func evictsBefore(a, b *storedCookie, now time.Time) bool {
	if x, y := a.expired(now), b.expired(now); x != y {
		return x
	}
	if a.Secure != b.Secure {
		return b.Secure
	}
	return a.used.Before(b.used)
}

// drop drops a cookie of a domain, and the domain with its last.
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

// enforceTotalLimit drops the domains that were asked for least lately while all together have too much, but not that at hand.
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

// Has reports whether there are cookies that may go to a host, be they private.
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

// SetOnChange sets who is told of changes, before the jar is used.
func (j *Jar) SetOnChange(changed func(c *Cookie)) {
	if j != nil {
		j.cfg.OnChange = changed
	}
}

// AppendForHost appends the cookies to all that may go to a host, but for those that are private.
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

// AppendAll appends all cookies that are not private, as [Append] writes them.
func (j *Jar) AppendAll(b []byte) []byte {
	if j == nil {
		return b
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for e := j.order.Back(); e != nil; e = e.Prev() { // who reads them has the same order
		for i := range e.Value.(*domain).cookies {
			if k := &e.Value.(*domain).cookies[i]; !k.Private {
				b = Append(b, &k.Cookie)
			}
		}
	}
	return b
}

// ImportAll takes in what AppendAll wrote. It reports false where that is damaged.
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

// HasNamed reports whether there is a cookie of a name that may go to a host.
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
