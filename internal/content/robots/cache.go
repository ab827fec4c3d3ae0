package robots

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/vfs"
)

// A Config configures a [Cache].
type Config struct {
	Agent    string           // product token whose rules are read
	TTL      time.Duration    // lifetime of rules; default 24 h, the maximum of RFC 9309
	ErrorTTL time.Duration    // lifetime of temporary rules; default 10 min
	MaxBytes int64            // approximate memory for parsed rules; default 64 MiB
	Now      func() time.Time // default time.Now

	Dir  string // directory of [Open]
	Disk vfs.FS // file system of Dir
}

func (cfg Config) withDefaults() Config {
	cfg.TTL = cmp.Or(cfg.TTL, 24*time.Hour)
	cfg.ErrorTTL = cmp.Or(cfg.ErrorTTL, 10*time.Minute)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 64<<20)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return cfg
}

// A Cache holds the rules of each origin, such as "https://example.com", until they expire. Its methods are safe for
// concurrent use.
//
// Rules are kept until they expire, however many origins there are. Each origin has an index entry of about 24 bytes,
// which suffices for a missing or empty robots.txt. Other files are in a segment on disk, and their parsed rules stay
// in memory while they are used and Config.MaxBytes has room.
//
// Parsed rules are in two generations. New and used rules enter the young generation. When it reaches half of MaxBytes,
// it becomes the old one, and the previous old one is dropped. So a lookup of rules in use needs only a read lock.
type Cache struct {
	cfg      Config
	segments *segments

	mu         sync.RWMutex // guards the fields below
	index      *bounded.Table[slot]
	young, old generation
	byStatus   map[uint16]*Rules // rules that follow from the status alone
}

// A slot is the index entry of an origin.
type slot struct {
	expires uint32 // Unix seconds; 0: no entry
	segment uint32 // 0: the rules follow from the status alone
	detail  uint32 // the status, or the frame's offset in its segment and delayBit
}

// delayBit marks rules with a crawl delay in slot.detail.
const delayBit = 1 << 31

type generation struct {
	entries map[string]entry
	size    int64
}

type entry struct {
	rules   *Rules
	expires uint32
}

// NewCache returns an empty cache. Data beyond Config.MaxBytes is in a temporary file until Close.
func NewCache(cfg Config) *Cache { return newCache(cfg, newScratchSegments()) }

func newCache(cfg Config, s *segments) *Cache {
	c := &Cache{cfg: cfg.withDefaults(), segments: s, young: generation{entries: map[string]entry{}},
		byStatus: map[uint16]*Rules{}}
	c.index = bounded.NewTable(func(s slot) bool { return !c.valid(s.expires) })
	return c
}

// Open returns a cache that stores responses in files in Config.Dir. It loads unexpired responses of earlier runs.
func Open(cfg Config) (*Cache, error) {
	c := newCache(cfg, newFileSegments(cfg.Disk, cfg.Dir))
	if err := c.segments.open(c.load); err != nil {
		return nil, fmt.Errorf("open robots.txt cache %s: %w", cfg.Dir, err)
	}
	c.segments.removeExpired(c.now())
	return c, nil
}

// Close closes the cache's files. The cache must not be used afterwards.
func (c *Cache) Close() error { return c.segments.close() }

func (c *Cache) now() uint32               { return uint32(c.cfg.Now().Unix()) }
func (c *Cache) valid(until uint32) bool   { return c.now() < until }
func (c *Cache) expiry(r *Rules) time.Time { return c.cfg.Now().Add(c.ttl(r)) }

func (c *Cache) ttl(r *Rules) time.Duration {
	if r.temporary {
		return c.cfg.ErrorTTL
	}
	return c.cfg.TTL
}

// Get returns an origin's rules. It returns false if they are unknown or expired; then robots.txt must be fetched.
func (c *Cache) Get(origin string) (*Rules, bool) {
	c.mu.RLock()
	e, young := c.young.entries[origin]
	known := young
	if !young {
		e, known = c.old.entries[origin]
	}
	var s slot
	if !young {
		s = c.index.Get(origin)
	}
	if !known {
		e.expires = s.expires
	}
	fixed := c.byStatus[uint16(s.detail)]
	c.mu.RUnlock()
	switch {
	case !c.valid(e.expires):
		return nil, false
	case young:
		return e.rules, true
	case !known && s.segment == 0:
		return fixed, fixed != nil
	case !known:
		if e.rules, known = c.read(origin, s); !known {
			return nil, false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.index.Get(origin) == s { // no newer response was stored
		c.store(strings.Clone(origin), e)
	}
	return e.rules, true
}

// read reads an origin's rules from disk. It returns false if they cannot be read.
func (c *Cache) read(origin string, s slot) (*Rules, bool) {
	f, err := c.segments.read(s.segment, s.detail&^delayBit)
	if err != nil || string(f.origin) != origin {
		return nil, false
	}
	return f.rules(c.cfg.Agent), true
}

// Answer stores a response to GET /robots.txt, as interpreted by [FromStatus], and returns the rules.
func (c *Cache) Answer(origin string, status int, body []byte) *Rules {
	r := FromStatus(status, body, c.cfg.Agent)
	f := frame{expires: uint32(c.expiry(r).Unix()), status: uint16(status), origin: []byte(origin), text: body}
	if f.needsText = !r.empty() && status >= 200 && status <= 299; f.needsText {
		_, f.hasDelay = r.Delay()
	} else {
		f.text = nil
	}
	s := c.write(&f, r.temporary)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(origin)
	c.set(origin, s)
	if f.needsText {
		c.store(strings.Clone(origin), entry{r, f.expires}) // origin may be part of a page's text
	}
	return r
}

// write writes a response to disk if it has text or a later run needs it, and returns the index entry. If the disk
// fails, the entry is empty: the rules are in memory only, and robots.txt is fetched again after they are dropped.
func (c *Cache) write(f *frame, temporary bool) slot {
	s := slot{expires: f.expires, detail: uint32(f.status)}
	if !f.needsText && (temporary || !c.segments.isPersistent()) {
		return s
	}
	segment, at, err := c.segments.write(f, c.now())
	switch {
	case !f.needsText:
		return s
	case err != nil:
		return slot{}
	}
	return slot{expires: f.expires, segment: segment, detail: at | f.delayBit()}
}

// set sets an index entry. The caller must hold mu.
func (c *Cache) set(origin string, s slot) {
	c.index.Set(origin, s)
	if status := uint16(s.detail); s.segment == 0 && c.byStatus[status] == nil {
		c.byStatus[status] = FromStatus(int(status), nil, c.cfg.Agent)
	}
}

// load adds a response of an earlier run to the index.
func (c *Cache) load(segment, at uint32, f *frame) {
	now := c.now()
	if f.expires <= now || f.expires > now+uint32(c.cfg.TTL/time.Second)+1 { // expired, or the clock was set back
		return
	}
	s := slot{expires: f.expires, detail: uint32(f.status)}
	if f.needsText {
		s.segment, s.detail = segment, at|f.delayBit()
	}
	c.set(string(f.origin), s)
}

// EachDelay calls f with each origin whose rules have a delay between requests. It reads the disk, and skips origins
// whose rules cannot be read.
func (c *Cache) EachDelay(f func(origin string, delay time.Duration)) {
	var slots []slot
	c.mu.RLock()
	c.index.Each(func(s slot) {
		if s.segment != 0 && s.detail&delayBit != 0 && c.valid(s.expires) {
			slots = append(slots, s)
		}
	})
	c.mu.RUnlock()
	slices.SortFunc(slots, func(a, b slot) int {
		return cmp.Or(cmp.Compare(a.segment, b.segment), cmp.Compare(a.detail, b.detail))
	})
	for _, s := range slots {
		answer, err := c.segments.read(s.segment, s.detail&^delayBit)
		if err != nil {
			continue
		}
		if delay, asked := answer.rules(c.cfg.Agent).Delay(); asked {
			f(string(answer.origin), delay)
		}
	}
}

// store adds rules to the young generation. The caller must hold mu.
func (c *Cache) store(origin string, e entry) {
	c.drop(origin)
	size := e.rules.size() + int64(len(origin))
	if c.young.size > 0 && c.young.size+size > c.cfg.MaxBytes/2 {
		c.old, c.young = c.young, generation{entries: map[string]entry{}}
	}
	c.young.entries[origin] = e
	c.young.size += size
}

// drop removes an origin's rules from memory. The caller must hold mu.
func (c *Cache) drop(origin string) {
	c.old.drop(origin)
	c.young.drop(origin)
}

func (g *generation) drop(origin string) {
	if e, ok := g.entries[origin]; ok {
		g.size -= e.rules.size() + int64(len(origin))
		delete(g.entries, origin)
	}
}
