package robots

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"kumo/internal/vfs"
)

// Config says how a cache keeps rules.
type Config struct {
	Agent    string           // the product token to read robots.txt for
	TTL      time.Duration    // how long rules hold; default 24 h, the most that RFC 9309 allows
	ErrorTTL time.Duration    // how long temporary rules hold; default 10 min
	Max      int              // origins kept; default 50,000
	MaxBytes int64            // about how much memory the rules may take; default 64 MiB
	Now      func() time.Time // default time.Now

	Dir  string // where [Open] keeps answers
	Disk vfs.FS // on which Dir is
}

func (cfg Config) withDefaults() Config {
	cfg.TTL = cmp.Or(cfg.TTL, 24*time.Hour)
	cfg.ErrorTTL = cmp.Or(cfg.ErrorTTL, 10*time.Minute)
	cfg.Max = cmp.Or(cfg.Max, 50_000)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 64<<20)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return cfg
}

// A Cache keeps the rules of each origin, "https://example.com", for a time. Its methods may be called by many
// goroutines at once.
//
// It keeps two generations. What is new or used goes into the young one; when that has half of all the room, it becomes
// the old one, and what nobody used in the meantime is forgotten. So a lookup of what is in use changes nothing, and
// needs no more than a read lock.
type Cache struct {
	cfg    Config
	keeper *keeper // nil: nothing outlives the process

	mu         sync.RWMutex // guards young and old
	young, old generation
}

type generation struct {
	entries map[string]entry
	size    int64
}

type entry struct {
	rules *Rules
	until time.Time
}

// NewCache makes an empty cache.
func NewCache(cfg Config) *Cache {
	return &Cache{cfg: cfg.withDefaults(), young: generation{entries: map[string]entry{}}}
}

// Get returns an origin's rules. False means that they are unknown or expired: fetch robots.txt.
func (c *Cache) Get(origin string) (*Rules, bool) {
	c.mu.RLock()
	e, young := c.young.entries[origin]
	ok := young
	if !young {
		e, ok = c.old.entries[origin]
	}
	c.mu.RUnlock()
	if !ok || !c.cfg.Now().Before(e.until) {
		return nil, false
	}
	if !young {
		c.keepUsed(origin)
	}
	return e.rules, true
}

// Put makes r the origin's rules from now on. Temporary rules hold for ErrorTTL, others for TTL.
func (c *Cache) Put(origin string, r *Rules) {
	ttl := c.cfg.TTL
	if r.temporary {
		ttl = c.cfg.ErrorTTL
	}
	e := entry{r, c.cfg.Now().Add(ttl)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store(strings.Clone(origin), e) // an origin may be part of a page's text
}

// Answer takes in an answer to GET /robots.txt, as [FromStatus] reads it, and returns the rules.
func (c *Cache) Answer(origin string, status int, body []byte) *Rules {
	r := FromStatus(status, body, c.cfg.Agent)
	c.Put(origin, r)
	if !r.temporary {
		c.keeper.keep(origin, status, body, c.cfg.Now().Add(c.cfg.TTL))
	}
	return r
}

// Each calls f with all rules that the cache has, which f must not ask for more.
func (c *Cache) Each(f func(origin string, r *Rules)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, g := range []generation{c.old, c.young} {
		for origin, e := range g.entries {
			f(origin, e.rules)
		}
	}
}

// keepUsed moves an entry from the old generation to the young one, unless something has happened to it since.
func (c *Cache) keepUsed(origin string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.old.entries[origin]; ok {
		c.store(strings.Clone(origin), e)
	}
}

// store puts e into the young generation; the caller holds mu.
func (c *Cache) store(origin string, e entry) {
	c.old.drop(origin)
	c.young.drop(origin)
	size := e.rules.size()
	if len(c.young.entries) >= max(c.cfg.Max/2, 1) || c.young.size > 0 && c.young.size+size > c.cfg.MaxBytes/2 {
		c.old, c.young = c.young, generation{entries: map[string]entry{}}
	}
	c.young.entries[origin] = e
	c.young.size += size
}

func (g *generation) drop(origin string) {
	if e, ok := g.entries[origin]; ok {
		g.size -= e.rules.size()
		delete(g.entries, origin)
	}
}
