package sim

import (
	"cmp"
	"fmt"
	"math/bits"
	"time"

	"kumo/internal/lab/dice"
)

// A web is hosts with at most 64 pages each, so that any set of a host's pages is a word. Page 0 is the host's root.
// Within a host pages form a tree from the root; links to other hosts are drawn from the web's seed, and not kept.
type web struct {
	seed         uint64
	hosts        []site
	byName       map[string]int32
	linksPerPage int      // to other hosts, a page at most; noLinks
	seeds        int      // so many hosts' roots are given to the crawl
	reachable    []uint64 // by host: pages that can be reached from the seeds
	pages        int      // how many these are
}

// Of a web's links: pages have none at all, nor to their own host.
const noLinks = -1

// maxPages is how many pages a host has at most: a set of them is a word.
const maxPages = 64

// A site is one host of a web.
type site struct {
	name  string
	pages int
	delay time.Duration // owed between the end of one request and the next
}

// A url is a page: the host's number times 64, and the page's within it.
type url uint32

func (u url) host() int32 { return int32(u >> 6) }
func (u url) bit() uint64 { return 1 << (u & 63) }

func at(host int32, page int) url { return url(host)<<6 | url(page) }

func newWeb(cfg Config, seed uint64) *web {
	w := &web{seed: seed, byName: make(map[string]int32, cfg.Hosts), linksPerPage: 3,
		seeds: min(cfg.Hosts, cmp.Or(cfg.Roots, 3+cfg.Hosts/50))}
	for i := range cfg.Hosts {
		r := hash(seed, 1, uint64(i))
		s := site{name: fmt.Sprintf("h%d.example", i), pages: 1 + int(r%uint64(2*cfg.Pages-1))}
		s.pages = min(s.pages, maxPages)
		s.delay = cfg.Delay/2 + time.Duration(hash(r)%uint64(cfg.Delay))
		w.hosts = append(w.hosts, s)
		w.byName[s.name] = int32(i)
	}
	w.explore()
	return w
}

// hash is a number drawn from a seed and what is asked about.
func hash(seed uint64, about ...uint64) uint64 {
	x := mix(seed)
	for _, a := range about {
		x = mix(x + 0x9e3779b97f4a7c15 + a*0xd1342543de82ef95)
	}
	return x
}

func mix(x uint64) uint64 {
	d := dice.Dice(x)
	return d.Next()
}

func (w *web) linksOf(u url, out []url) []url {
	if w.linksPerPage == noLinks {
		return out
	}
	h, p := u.host(), int(u&63)
	pages := w.hosts[h].pages
	for _, child := range [...]int{2*p + 1, 2*p + 2, p / 2} {
		if child < pages && child != p {
			out = append(out, at(h, child))
		}
	}
	r := hash(w.seed, 2, uint64(u))
	for n := int(r % uint64(w.linksPerPage+1)); n > 0; n-- {
		r = mix(r)
		to := int32(r >> 32 % uint64(len(w.hosts)))
		page := 0
		if r&3 == 0 { // most links lead to roots
			page = int(r >> 8 & 0xffff % uint64(w.hosts[to].pages))
		}
		out = append(out, at(to, page))
	}
	return out
}

func (w *web) explore() {
	w.reachable = make([]uint64, len(w.hosts))
	var next []url
	for i := range w.seeds {
		w.reachable[i] |= 1
		next = append(next, at(int32(i), 0))
	}
	var links []url
	for len(next) > 0 {
		u := next[len(next)-1]
		next = next[:len(next)-1]
		w.pages++
		links = w.linksOf(u, links[:0])
		for _, l := range links {
			if w.reachable[l.host()]&l.bit() == 0 {
				w.reachable[l.host()] |= l.bit()
				next = append(next, l)
			}
		}
	}
}

// name is a URL as a person reads it.
func (w *web) name(u url) string { return fmt.Sprintf("%s/%d", w.hosts[u.host()].name, u&63) }

// lowest is the first page of a set that is not empty.
func lowest(set uint64) int { return bits.TrailingZeros64(set) }
