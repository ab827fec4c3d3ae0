package mesh

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// A recent is a list of the latest nodes of some kind of event, the latest last.
type recent struct {
	lasts time.Duration
	most  int
	all   []nodeAt
}

type nodeAt struct {
	node strategy.Node
	at   time.Time
}

func (r *recent) add(n strategy.Node, now time.Time) {
	r.all = append(slices.DeleteFunc(r.all, func(o nodeAt) bool { return o.node == n || now.Sub(o.at) >= r.lasts }),
		nodeAt{n, now})
	if len(r.all) > r.most {
		r.all = slices.Delete(r.all, 0, 1)
	}
}

func (r *recent) has(n strategy.Node, now time.Time) bool {
	return slices.ContainsFunc(r.all, func(o nodeAt) bool { return o.node == n && now.Sub(o.at) < r.lasts })
}

func (r *recent) list(now time.Time) (nodes []strategy.Node) {
	for _, o := range r.all {
		if now.Sub(o.at) < r.lasts {
			nodes = append(nodes, o.node)
		}
	}
	return nodes
}
