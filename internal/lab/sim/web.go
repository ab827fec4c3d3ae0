package sim

import (
	"cmp"
	"fmt"
	"math/bits"
	"time"

	"kumo/internal/lab/dice"
)

// A web has hosts with at most 64 pages each, so that a set of a host's pages fits a word. Page 0 is the root, and a
// host's pages form a tree. Links to other hosts are computed from the seed and not stored.
type web struct {
	seed         uint64
	hosts        []site
	byName       map[string]int32
	linksPerPage int      // most links of a page to other hosts; or noLinks
	seeds        int      // number of hosts whose root is a seed
	reachable    []uint64 // by host: pages reachable from the seeds
	pages        int      // how many pages are reachable
}

// noLinks disables all links, also those within a host.
const noLinks = -1

// maxPages is the most pages that a host can have.
const maxPages = 64

// A site is a host of a web.
type site struct {
	name  string
	pages int
	delay time.Duration // between the end of a request and the start of the next
}

// A url identifies a page: 64 times the host's number, plus the page's number on the host.
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

// hash returns a pseudorandom number for a seed and other numbers.
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

// name returns a URL in readable form.
func (w *web) name(u url) string { return fmt.Sprintf("%s/%d", w.hosts[u.host()].name, u&63) }

// lowest returns the first page of a set, which must not be empty.
func lowest(set uint64) int { return bits.TrailingZeros64(set) }
