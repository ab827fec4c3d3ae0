package job

import (
	"slices"

	"kumo/internal/base/advice"
	"kumo/internal/state/rank/ids"
)

// The orders in which URLs that wait at a host are fetched.
const (
	PageRank = "pagerank"
	OPIC     = "opic"
	InDegree = "indegree"
	ByDepth  = "depth"
	Breadth  = "breadth"
	Random   = "random"
)

// OrderKey and PreferKey are the settings that say which URLs go first.
const (
	OrderKey  = "order"
	PreferKey = "prefer"
)

// Orders are all orders, the default first.
func Orders() []string { return []string{ByDepth, PageRank, OPIC, InDegree, Breadth, Random} }

// ByLinks reports whether the job's order goes by the links that were found.
func (j *Job) ByLinks() bool { return byLinks(j.Order) }

func byLinks(order string) bool { return slices.Contains([]string{PageRank, OPIC, InDegree}, order) }

// CheckMeshOrder returns an error if a crawl without a center cannot have an order.
func CheckMeshOrder(order string) error {
	if !byLinks(order) {
		return nil
	}
	return advice.Usage("--order %s goes by links, and in a crawl without a centre a URL's links are with other nodes "+
		"than the URL: take %s, %s or %s", order, ByDepth, Breadth, Random)
}

const (
	rankedURLBytes   = 16      // bytes of memory, at most
	reportedURLBytes = 2       // and where other nodes are told of it
	minRanked        = 1 << 17 // URLs, of which some 2 MB cannot be had for less
)

// KnownMemory is what there is for known URLs, queues and digests together, in eighths of which they have four, two and
// one. An order that goes by links takes a quarter of it.
func (j *Job) KnownMemory() int64 {
	if j.ByLinks() {
		return j.MemoryBudget() * 3 / 4
	}
	return j.MemoryBudget()
}

// RankMemory is what an order that goes by links has, alone or with other nodes: for how many URLs, and bytes of links
// to keep in memory.
func (j *Job) RankMemory(others bool) (urls int, links int64) {
	each := int64(rankedURLBytes)
	if others {
		each += reportedURLBytes
	}
	all := (j.MemoryBudget() - j.KnownMemory()) * 7 / 8
	return int(min(max(all*3/4/each, minRanked), ids.MaxURLs)), all / 4
}
