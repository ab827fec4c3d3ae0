package synthweb

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"kumo/internal/lab/dice"
)

const (
	fanout    = 8 // number of children of a page in its host's tree, and of a host in the tree of hosts
	deadPages = 4
)

// A Web is a graph of hosts, pages and links. It is immutable and may be used concurrently.
type Web struct {
	cfg   Config
	hosts []host // live hosts, then dead hosts
	total int    // pages of all hosts, including dead ones
	rates [numKinds]int
}

type host struct {
	first   int // number of its first page among all pages
	pages   int
	traits  traits
	dead    bool
	tongue  *tongue
	latency time.Duration
}

// New returns the web that cfg describes.
func New(cfg Config) *Web {
	w := &Web{cfg: cfg.withDefaults()}
	for k, rate := range w.cfg.Kinds {
		w.rates[k] = rate
	}
	w.addLiveHosts()
	w.addDeadHosts()
	for i := range w.hosts {
		h := &w.hosts[i]
		h.first = w.total
		w.total += h.pages
	}
	return w
}

func (w *Web) addLiveHosts() {
	n := w.cfg.Hosts
	w.hosts = make([]host, n)
	for i, pages := range w.cfg.shares() {
		d := w.cfg.dice(uint32(i), aboutLatency, 0)
		w.hosts[i] = host{pages: pages, tongue: w.cfg.tongueOfHost(i), latency: w.cfg.latency(&d)}
	}
	for t := range numTraits {
		if t.dead() {
			continue
		}
		sparse(w.cfg.count(t), n, dice.Hash(w.cfg.Seed, uint64(t)), func(i int) { w.addTrait(&w.hosts[i], i, t) })
	}
}

func (c *Config) latency(d *dice.Dice) time.Duration {
	least, span := float64(c.Latency)/2, float64(c.Latency)
	if c.Slowest > 0 {
		least, span = float64(c.Latency), float64(c.Slowest-c.Latency)
	}
	return time.Duration(least + d.Unit()*span)
}

func (w *Web) addTrait(h *host, i int, t Trait) {
	h.traits.put(t)
	switch t {
	case Legacy:
		if h.tongue.language == "" {
			h.tongue = legacy(i)
		}
	case Slow:
		h.latency = w.cfg.Slow
	}
}

func (w *Web) addDeadHosts() {
	for t := range numTraits {
		if !t.dead() {
			continue
		}
		for range w.cfg.count(t) {
			h := host{pages: deadPages, dead: true, tongue: universal()}
			h.traits.put(t)
			w.hosts = append(w.hosts, h)
		}
	}
}

// count returns the number of hosts that have a trait.
func (c *Config) count(t Trait) int { return (c.Traits[t]*c.Hosts + 999) / 1000 }

// shares distributes the pages over the hosts: one each, the rest by weight.
func (c *Config) shares() []int {
	n := c.Hosts
	weights, sum := make([]float64, n), 0.0
	for i := range weights {
		d := c.dice(uint32(i), aboutPages, 0)
		weights[i] = math.Exp(max(c.Spread, 0) * max(-2.5, min(d.Normal(), 2.5)))
		sum += weights[i]
	}
	pages, rest := make([]int, n), float64(c.Pages-n)
	before, dealt := 0.0, 0
	for i, weight := range weights {
		before += weight
		upTo := int(math.Round(rest * before / sum))
		pages[i] = 1 + upTo - dealt
		dealt = upTo
	}
	return pages
}

// dice returns the random numbers for a topic of a resource.
func (c *Config) dice(host uint32, k Kind, n uint32) dice.Dice {
	return dice.Dice(dice.Hash(c.Seed, uint64(host)<<8|uint64(k), uint64(n)))
}

// Len returns the number of live hosts, Host(0) to Host(Len()-1).
func (w *Web) Len() int { return w.cfg.Hosts }

// Latency returns the time that host i takes to answer a request.
func (w *Web) Latency(i int) time.Duration { return w.hosts[i].latency }

// Seeds returns the URL from which everything can be reached.
func (w *Web) Seeds() []string { return []string{w.URL(Ref{}, w.cfg.usualPort())} }

func (c *Config) scheme() string {
	if c.TLS {
		return "https"
	}
	return "http"
}

// usualPort returns the port that URLs omit.
func (c *Config) usualPort() int {
	if c.TLS {
		return 443
	}
	return 80
}

// URL returns the canonical address of a resource on a server that listens on port.
func (w *Web) URL(r Ref, port int) string { return string(w.appendURL(nil, r, port)) }

func (w *Web) appendURL(dst []byte, r Ref, port int) []byte {
	dst = append(append(dst, w.cfg.scheme()...), ':')
	return w.appendSchemeless(dst, r, port)
}

func (w *Web) appendSchemeless(dst []byte, r Ref, port int) []byte {
	dst = append(dst, "//"...)
	dst = w.appendHost(dst, r.Host)
	if port != w.cfg.usualPort() {
		dst = append(dst, ':')
		dst = strconv.AppendInt(dst, int64(port), 10)
	}
	return w.appendPath(dst, r, false)
}

// String describes the web in one line.
func (w *Web) String() string {
	return fmt.Sprintf("%d pages on %d hosts (and %d dead ones), seed %d",
		w.cfg.Pages, w.cfg.Hosts, len(w.hosts)-w.cfg.Hosts, w.cfg.Seed)
}

// id returns a unique number for a resource that has one; -1 for others.
func (w *Web) id(r Ref) int {
	if r.Kind >= Robots || int(r.N) >= w.hosts[r.Host].pages {
		return -1
	}
	return int(r.Kind)*w.total + w.hosts[r.Host].first + int(r.N)
}

// ids returns the number of possible ids.
func (w *Web) ids() int { return int(Robots) * w.total }

// ref is the inverse of id.
func (w *Web) ref(id int) Ref {
	page := id % w.total
	low, high := 0, len(w.hosts) // hosts[low].first <= page < hosts[high].first
	for high-low > 1 {
		if mid := (low + high) / 2; w.hosts[mid].first <= page {
			low = mid
		} else {
			high = mid
		}
	}
	return Ref{Host: uint32(low), N: uint32(page - w.hosts[low].first), Kind: Kind(id / w.total)}
}
