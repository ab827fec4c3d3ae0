package experiments

import (
	"math"
	"slices"

	"kumo/internal/lab/dice"
	"kumo/internal/state/rank"
)

// A Graph is pages by numbers from 0, with the pages that each links to, and the host of each.
type Graph struct {
	first []int     // of each page among links, and how many there are
	links []rank.ID // of each page once, ascending
	hosts []uint32  // nil: they are not known
	count int       // hosts
}

// Pages is how many pages there are.
func (g *Graph) Pages() int { return len(g.first) - 1 }

// Links is how many links there are.
func (g *Graph) Links() int { return len(g.links) }

// Hosts is how many hosts there are, 0 if that is not known.
func (g *Graph) Hosts() int { return g.count }

func (g *Graph) linksOf(pages []rank.ID) (n int) {
	for _, u := range pages {
		n += len(g.out(u))
	}
	return n
}

func (g *Graph) out(u rank.ID) []rank.ID { return g.links[g.first[u]:g.first[u+1]] }

// page is one as an order has it.
func (g *Graph) page(u rank.ID) rank.Page {
	out := g.out(u)
	return rank.Page{ID: u, Links: out, Out: len(out)}
}

// graphOf makes a graph of links that are told twice in the same order, from pages in any.
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

// sortLinks sorts links, and leaves out those that a page has twice.
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

// A GeneratedGraph is a made-up web. What is true of real ones is true of it: few pages have most of the in-links (a power
// law, by an exponent of 2.1), hosts are of very different sizes, three links in four stay on their host, half of the
// pages link to their host's front page, and what is popular may be deep within a host.
type GeneratedGraph struct {
	Seed  uint64
	Pages int
	// BySize is which part of the links to other hosts leads to the host of any page, so that large hosts are likelier;
	// how likely others are has nothing to do with their size.
	BySize float64
}

// BySize is the usual part: what real webs have is not known well.
const BySize = 0.25

const (
	minHost     = 10   // pages of the smallest hosts; half of the hosts are less than twice as large
	internal    = 0.75 // of the links that are drawn
	popular     = 0.75 // of the internal ones
	linkHome    = 0.5  // of the pages
	toHome      = 0.5  // of the external links
	leastLinks  = 2
	linksScale  = 3   // mean of the links beyond: twice as many
	maxLinks    = 300 // of a page, about
	largestHost = 20  // no host has more than this part of all pages
)

// Graph makes it.
func (m GeneratedGraph) Graph() *Graph {
	d := dice.Dice(m.Seed)
	var begin []int // of each host; then the number of pages
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

// host tells the links by which a host's pages are found, and those that they have.
func (m GeneratedGraph) host(begin []int, h int, link func(from, to rank.ID)) {
	home, n := begin[h], begin[h+1]-begin[h]
	for i := range n {
		d := dice.Dice(m.Seed ^ uint64(home+i)*0xd1342543de82ef95)
		d.Next()
		u := rank.ID(home + i)
		switch {
		case i > 0: // a page before it on its host
			link(rank.ID(home+below(&d, i)), u)
		case h > 0: // any page of the hosts before
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

// target draws where a link of a host's page leads.
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

// shuffled is the number that has a place in an order of n numbers that has nothing to do with theirs.
func shuffled(place, n int) int {
	const prime = 1_000_000_007
	if n%prime == 0 {
		return place
	}
	return (place*(prime%n) + n/3) % n
}

func below(d *dice.Dice, n int) int { return int(d.Next() >> 1 % uint64(n)) }

// skewed is a number below n: 0 is the likeliest, and i has a share of i^(-7/8).
func skewed(d *dice.Dice, n int) int {
	x := d.Unit()
	x *= x
	x *= x
	x *= x
	return int(x * float64(n))
}
