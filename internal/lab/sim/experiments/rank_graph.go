package experiments

import (
	"math"
	"slices"

	"kumo/internal/lab/dice"
	"kumo/internal/state/rank"
)

// A Graph has pages, numbered from 0, with their links and hosts.
type Graph struct {
	first []int     // index in links of each page's first link, and the number of links
	links []rank.ID // targets of each page, ascending, without duplicates
	hosts []uint32  // of each page; nil: unknown
	count int       // number of hosts
}

// Pages returns the number of pages.
func (g *Graph) Pages() int { return len(g.first) - 1 }

// Links returns the number of links.
func (g *Graph) Links() int { return len(g.links) }

// Hosts returns the number of hosts, 0 if unknown.
func (g *Graph) Hosts() int { return g.count }

func (g *Graph) linksOf(pages []rank.ID) (n int) {
	for _, u := range pages {
		n += len(g.out(u))
	}
	return n
}

func (g *Graph) out(u rank.ID) []rank.ID { return g.links[g.first[u]:g.first[u+1]] }

// page returns a page in the form that orders use.
func (g *Graph) page(u rank.ID) rank.Page {
	out := g.out(u)
	return rank.Page{ID: u, Links: out, Out: len(out)}
}

// graphOf builds a graph from links. It calls each twice, which must produce the same links in the same order both
// times; pages may be in any order.
func graphOf(pages int, each func(link func(from, to rank.ID))) *Graph {
	g := &Graph{first: make([]int, pages+1)}
	each(func(from, _ rank.ID) { g.first[from+1]++ })
	for u := range pages {
		g.first[u+1] += g.first[u]
	}
	at := slices.Clone(g.first)
	g.links = make([]rank.ID, g.first[pages])
	each(func(from, to rank.ID) {
		g.links[at[from]] = to
		at[from]++
	})
	g.sortLinks()
	return g
}

// sortLinks sorts the links of each page and removes duplicates.
func (g *Graph) sortLinks() {
	kept := 0
	for u := range g.Pages() {
		out := g.links[g.first[u]:g.first[u+1]]
		slices.Sort(out)
		g.first[u] = kept
		kept += copy(g.links[kept:], slices.Compact(out))
	}
	g.first[g.Pages()] = kept
	g.links = slices.Clip(g.links[:kept])
}

// A GeneratedGraph is a generated web with properties of real ones: few pages have most of the in-links (a power law
// with exponent 2.1), host sizes vary widely, three in four links stay on their host, half of the pages link to their
// host's root page, and popular pages may be deep within a host.
type GeneratedGraph struct {
	Seed  uint64
	Pages int
	// BySize is the share of external links that lead to the host of a random page, which prefers large hosts. The
	// targets of the others do not depend on host size.
	BySize float64
}

// BySize is the usual value. The value of real webs is not well known.
const BySize = 0.25

const (
	minHost     = 10   // pages of the smallest hosts; half of the hosts are less than twice as large
	internal    = 0.75 // share of the links drawn
	popular     = 0.75 // share of the internal links
	linkHome    = 0.5  // share of the pages
	toHome      = 0.5  // share of the external links
	leastLinks  = 2
	linksScale  = 3   // half the mean number of links beyond leastLinks
	maxLinks    = 300 // of a page, approximately
	largestHost = 20  // no host has more than 1/largestHost of all pages
)

// Graph generates the graph.
func (m GeneratedGraph) Graph() *Graph {
	d := dice.Dice(m.Seed)
	var begin []int // first page of each host, and the number of pages
	for at := 0; at < m.Pages; {
		begin = append(begin, at)
		at += min(int(minHost/(1-d.Unit())), max(m.Pages/largestHost, 1))
	}
	hosts := make([]uint32, m.Pages)
	begin = append(begin, m.Pages)
	for h := range len(begin) - 1 {
		for u := begin[h]; u < begin[h+1]; u++ {
			hosts[u] = uint32(h)
		}
	}
	g := graphOf(m.Pages, func(link func(from, to rank.ID)) {
		for h := range len(begin) - 1 {
			m.host(begin, h, link)
		}
	})
	g.hosts, g.count = hosts, len(begin)-1
	return g
}

// host generates the links to a host's pages by which they are found, and the links of these pages.
func (m GeneratedGraph) host(begin []int, h int, link func(from, to rank.ID)) {
	home, n := begin[h], begin[h+1]-begin[h]
	for i := range n {
		d := dice.Dice(m.Seed ^ uint64(home+i)*0xd1342543de82ef95)
		d.Next()
		u := rank.ID(home + i)
		switch {
		case i > 0: // from an earlier page of the host
			link(rank.ID(home+below(&d, i)), u)
		case h > 0: // from any page of the earlier hosts
			link(rank.ID(below(&d, home)), u)
		}
		if d.Unit() < linkHome {
			link(u, rank.ID(home))
		}
		degree := leastLinks + int(linksScale/math.Sqrt(1-d.Unit()))
		for range min(degree, maxLinks) {
			link(u, rank.ID(m.target(begin, h, &d)))
		}
	}
}

// target draws the target of a link from a host's page.
func (m GeneratedGraph) target(begin []int, h int, d *dice.Dice) int {
	if d.Unit() < internal {
		n := begin[h+1] - begin[h]
		if d.Unit() < popular {
			return begin[h] + shuffled(skewed(d, n), n)
		}
		return begin[h] + below(d, n)
	}
	all := len(begin) - 1
	if d.Unit() < m.BySize {
		h, _ = slices.BinarySearch(begin, below(d, m.Pages)+1)
		h--
	} else {
		h = shuffled(skewed(d, all), all)
	}
	n := begin[h+1] - begin[h]
	if d.Unit() < toHome {
		return begin[h]
	}
	return begin[h] + shuffled(skewed(d, n), n)
}

// shuffled returns the number at a place of a fixed pseudorandom permutation of n numbers.
func shuffled(place, n int) int {
	const prime = 1_000_000_007
	if n%prime == 0 {
		return place
	}
	return (place*(prime%n) + n/3) % n
}

func below(d *dice.Dice, n int) int { return int(d.Next() >> 1 % uint64(n)) }

// skewed draws a number below n. 0 is the most likely; the probability of i is proportional to i^(-7/8).
func skewed(d *dice.Dice, n int) int {
	x := d.Unit()
	x *= x
	x *= x
	x *= x
	return int(x * float64(n))
}
