package hub

import (
	"hash/fnv"
	"strings"

	"kumo/internal/cluster/strategy"
)

// latencyHints remembers which nodes reached hosts of a domain and of a network, and which did not: neighbours are
// likely to be reached from the same nodes. It is two generations of bounded size, and lost with its control unit: it
// decides only who is asked first.
type latencyHints struct {
	young, old map[string]map[strategy.Node]*latencyStats
}

// A sight is how one node sees the hosts of a domain or network.
type latencyStats struct {
	reached, failed uint32
	took            int64 // microseconds, the mean of those reached
}

// maxNeighborhoods is how many domains and networks a generation has.
const maxNeighborhoods = 1 << 15

func newLatencyHints() latencyHints {
	return latencyHints{young: map[string]map[strategy.Node]*latencyStats{}}
}

// neighborhood is the last two labels of a name, a rough domain, and a host's network.
func neighborhood(host, network string) []string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	domain := host
	if last := strings.LastIndexByte(host, '.'); last > 0 {
		domain = host[strings.LastIndexByte(host[:last], '.')+1:]
	}
	if network == "" {
		return []string{domain}
	}
	return []string{domain, "net " + network}
}

func (n *latencyHints) record(host, network string, by strategy.Node, ok bool, micros int64) {
	for _, k := range neighborhood(host, network) {
		all := n.young[k]
		if all == nil {
			if len(n.young) >= maxNeighborhoods {
				n.old, n.young = n.young, map[string]map[strategy.Node]*latencyStats{}
			}
			if all = n.old[k]; all == nil {
				all = map[strategy.Node]*latencyStats{}
			}
			n.young[k] = all
		}
		s := all[by]
		if s == nil {
			if len(all) >= 16 {
				continue
			}
			s = &latencyStats{}
			all[by] = s
		}
		if !ok {
			s.failed++
			continue
		}
		s.reached++
		s.took += (micros - s.took) / int64(min(s.reached, 16))
	}
}

// What is not known, in microseconds: of a node that has met no neighbour of a host it is hoped that it is near, so
// that it is asked, too; and what a node that did not reach one counts for.
const (
	unknownCost = 5_000
	failedCost  = 5_000_000
)

// cost is how far a node is likely to be from a host, in microseconds, and whether it has met a neighbour of the host.
func (n *latencyHints) cost(node strategy.Node, host, network string) (cost float64, known bool) {
	cost, sights := float64(unknownCost), 0
	for _, k := range neighborhood(host, network) {
		all := n.young[k]
		if all == nil {
			all = n.old[k]
		}
		if s := all[node]; s != nil {
			total := float64(s.reached + s.failed)
			c := (float64(s.reached)*float64(s.took) + float64(s.failed)*failedCost) / total
			if sights++; sights == 1 || c < cost {
				cost = c
			}
		}
	}
	return cost, sights > 0
}

// tieBreak is a number that follows from a name, the same in each run.
func tieBreak(host string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(host))
	return int(h.Sum32() >> 1)
}
