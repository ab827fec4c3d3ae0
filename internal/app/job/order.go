package job

import (
	"slices"

	"kumo/internal/base/advice"
	"kumo/internal/state/rank/ids"
)

// The orders in which a host's pending URLs are fetched.
const (
	PageRank = "pagerank"
	OPIC     = "opic"
	InDegree = "indegree"
	ByDepth  = "depth"
	Breadth  = "breadth"
	Random   = "random"
)

// Settings that determine which URLs come first.
const (
	OrderKey  = "order"
	PreferKey = "prefer"
)

// Orders returns all orders, the default first.
func Orders() []string { return []string{ByDepth, PageRank, OPIC, InDegree, Breadth, Random} }

// ByLinks reports whether the job's order depends on the found links.
func (j *Job) ByLinks() bool { return byLinks(j.Order) }

func byLinks(order string) bool { return slices.Contains([]string{PageRank, OPIC, InDegree}, order) }

// CheckMesh returns an error if a setting is not available in a mesh crawl.
func (j *Job) CheckMesh() error {
	return CheckMeshOrder(j.Order)
}

// CheckMeshSettings is CheckMesh for settings as they are stored.
func CheckMeshSettings(all map[string][]string) error {
	for _, order := range all[OrderKey] {
		if err := CheckMeshOrder(order); err != nil {
			return err
		}
	}
	return nil
}

// CheckMeshOrder returns an error if the order is not available in a mesh crawl.
func CheckMeshOrder(order string) error {
	if !byLinks(order) {
		return nil
	}
	return advice.Usage("--order %s needs all links to a URL, which are spread over the nodes in a mesh crawl: "+
		"use %s, %s or %s, or the strategy shard, hub or balance", order, ByDepth, Breadth, Random)
}

const (
	rankedURLBytes   = 16      // bytes of memory, at most
	reportedURLBytes = 2       // additional bytes where other nodes report URLs
	minRanked        = 1 << 17 // minimum number of URLs; needs about 2 MB in any case
)

// KnownMemory returns the memory for known URLs, queues and digests, which get 4, 2 and 1 eighths of it. An order by
// links takes a quarter of the budget.
func (j *Job) KnownMemory() int64 {
	if j.ByLinks() {
		return j.MemoryBudget() * 3 / 4
	}
	return j.MemoryBudget()
}

// RankMemory returns the memory of an order by links, alone or with other nodes: a number of URLs, and bytes of links
// to buffer in memory.
func (j *Job) RankMemory(others bool) (urls int, links int64) {
	each := int64(rankedURLBytes)
	if others {
		each += reportedURLBytes
	}
	all := (j.MemoryBudget() - j.KnownMemory()) * 7 / 8
	return int(min(max(all*3/4/each, minRanked), ids.MaxURLs)), all / 4
}
