package hub

import (
	"hash/fnv"
	"strings"

	"kumo/internal/cluster/strategy"
)

// latencyHints records which nodes reached hosts of a domain or network, and which did not, because nearby hosts are
// likely to be reached from the same nodes. It has two generations of bounded size. A new control unit starts without
// it; it only affects which nodes probe first.
type latencyHints struct {
	young, old map[string]map[strategy.Node]*latencyStats
}

// latencyStats are one node's results for a domain or network.
type latencyStats struct {
	reached, failed uint32
	took            int64 // mean connection time in µs
}

// maxNeighborhoods is the maximum number of domains and networks in a generation.
const maxNeighborhoods = 1 << 15

func newLatencyHints() latencyHints {
	return latencyHints{young: map[string]map[strategy.Node]*latencyStats{}}
}

// neighborhood returns the keys of a host: the last two labels of its name, which approximate its domain, and its
// network.
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

// Costs in microseconds. unknownCost applies to nodes without results for a neighborhood; it is low, so that they are
// tried, too. failedCost applies to failures.
const (
	unknownCost = 5_000
	failedCost  = 5_000_000
)

// cost estimates a node's distance from a host, in microseconds. known reports whether it has results for the
// neighborhood.
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

// tieBreak returns a number that depends only on the name.
func tieBreak(host string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(host))
	return int(h.Sum32() >> 1)
}
