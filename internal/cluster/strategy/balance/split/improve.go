package split

import "slices"

// maxTrials bounds the exchanges tried, which take some hundredths of a second.
const maxTrials = 1 << 17

// A search improves a split of whole hosts.
type search struct {
	nodes  []Time
	sizes  []int
	counts []int
	hosts  [][]int // by owner
	left   int     // trials
}

// An exchange moves a host of the node that takes longest to another node, for a smaller host of that node or for none.
type exchange struct {
	give, receive int // hosts; receive is -1 if there is none
	to            int
	time          float64 // the longer of the two nodes' times after the exchange
}

// improve changes owners by exchanges while these shorten the longest time, or reduce the number of nodes that take as
// long.
func improve(nodes []Time, sizes, owners []int) {
	s := search{nodes, sizes, Counts(len(nodes), sizes, owners), make([][]int, len(nodes)), maxTrials}
	for k, owner := range owners {
		s.hosts[owner] = append(s.hosts[owner], k)
	}
	least := LowerBound(nodes, sizes)
	for {
		from := s.longest()
		time := nodes[from].at(s.counts[from])
		if time <= least {
			return
		}
		best, found := s.best(from, time)
		if !found {
			return
		}
		s.move(best.give, from, best.to)
		owners[best.give] = best.to
		if best.receive >= 0 {
			s.move(best.receive, best.to, from)
			owners[best.receive] = from
		}
	}
}

// longest returns the node that takes longest.
func (s *search) longest() (longest int) {
	var most float64
	for i, f := range s.nodes {
		if time := f.at(s.counts[i]); time > most {
			longest, most = i, time
		}
	}
	return longest
}

// best returns the exchange after which both nodes finish first, if that is before time.
func (s *search) best(from int, time float64) (best exchange, found bool) {
	best.time = time
	for _, give := range s.hosts[from] {
		for to := range s.nodes {
			if to == from {
				continue
			}
			if s.try(&best, from, exchange{give: give, receive: -1, to: to}) {
				found = true
			}
			for _, take := range s.hosts[to] {
				if s.try(&best, from, exchange{give: give, receive: take, to: to}) {
					found = true
				}
			}
			if s.left <= 0 {
				return best, found
			}
		}
	}
	return best, found
}

// try replaces best by an exchange that is better, and reports whether it did.
func (s *search) try(best *exchange, from int, e exchange) bool {
	size := s.sizes[e.give]
	if e.receive >= 0 {
		size -= s.sizes[e.receive]
	}
	if size <= 0 {
		return false
	}
	s.left--
	e.time = s.nodes[e.to].at(s.counts[e.to] + size)
	if e.time >= best.time {
		return false
	}
	if e.time = max(e.time, s.nodes[from].at(s.counts[from]-size)); e.time >= best.time {
		return false
	}
	*best = e
	return true
}

// move records a host's new owner.
func (s *search) move(host, from, to int) {
	at := slices.Index(s.hosts[from], host)
	s.hosts[from] = slices.Delete(s.hosts[from], at, at+1)
	s.hosts[to] = append(s.hosts[to], host)
	s.counts[from] -= s.sizes[host]
	s.counts[to] += s.sizes[host]
}
