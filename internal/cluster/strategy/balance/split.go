package balance

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/balance/split"
)

// A need is a node as a split sees it.
type need struct {
	*worker
	time   split.Time // for URLs beside those that it has
	endsIn float64    // seconds until it is done with these
	lowIn  float64    // until it has too little to do
	share  int        // of what is pooled
	lead   float64    // with less than that to do it gets more
}

// needs are the nodes that may be given something.
func (p *policy) needs() (all []*need) {
	for _, w := range p.activeWorkers() {
		f, left := w.time(), w.left()
		n := &need{worker: w, lead: max(p.cfg.MinWork, w.delivery.took).Seconds(),
			time: func(n int) float64 { return f(left + n) }}
		if left > 0 {
			n.endsIn = f(left)
			n.lowIn = n.endsIn - p.Now().Sub(w.reportedAt).Seconds()
			if w.load.Busy >= idleBusy { // its workers are the limit, perhaps
				n.lowIn -= n.endsIn * float64(left-w.queued()) / float64(left)
			}
		}
		all = append(all, n)
	}
	return all
}

func times(all []*need) (times []split.Time) {
	for _, n := range all {
		times = append(times, n.time)
	}
	return times
}

// splitURLs splits URLs, of which there is one at least, among nodes.
func (p *policy) splitURLs(nodes []split.Time, urls int) []int {
	if p.cfg.Splitter == Swarm {
		return split.Swarm(nodes, urls, split.SwarmConfig{Seed: p.cfg.Seed})
	}
	return split.Exact(nodes, urls)
}

// earliestNode is to whom a host goes that does not wait.
func (p *policy) earliestNode(host string, links int) strategy.Node {
	switch p.cfg.Splitter {
	case Hash:
		h := fnv.New64a()
		_, _ = h.Write([]byte(host))
		return p.Members()[h.Sum64()%uint64(len(p.Members()))]
	case Even:
		return slices.MinFunc(p.activeWorkers(), func(a, b *worker) int { return cmp.Compare(a.assigned, b.assigned) }).node
	}
	return earliest(p.needs(), links).node
}

// first is the node that is done first with so many URLs more.
func earliest(all []*need, urls int) *need {
	return slices.MinFunc(all, func(a, b *need) int { return cmp.Compare(a.time(urls), b.time(urls)) })
}

// When all would be done within so many leads, all is given: later where there are slices alone, as a host's URLs wait
// for its politeness.
const (
	assignHostsAt  = 4
	assignSlicesAt = 2
)

// assignAllAt is when all that is pooled is given, in seconds before all would be done.
func (p *policy) assignAllAt() float64 {
	leads := assignSlicesAt
	if slices.ContainsFunc(p.pool.bySize(), (*pooled).whole) {
		leads = assignHostsAt
	}
	return float64(leads) * p.cfg.MinWork.Seconds()
}

// split gives what is pooled to nodes that need more.
func (p *policy) split() {
	if len(p.pool.hosts) == 0 {
		return
	}
	all := p.needs()
	nodes := times(all)
	last := 0.0
	for i, count := range p.splitURLs(nodes, p.pool.links) {
		n := all[i]
		n.share = count
		if count > 0 {
			last = max(last, nodes[i](count))
		}
	}
	p.widen(all)
	if last <= p.assignAllAt() || len(all) == 1 {
		p.assignAll(all)
		return
	}
	slices.SortStableFunc(all, func(a, b *need) int { return cmp.Compare(a.lowIn, b.lowIn) })
	for _, n := range all {
		if n.lowIn < n.lead && n.share > 0 && (n.hasOwnRate() || n.left() == 0) {
			p.assignPiece(all, n, last)
		}
	}
}

// part is half the node's share, or less as long as it has not shown in this crawl how fast it is.
func (n *need) part() int {
	of := 2
	switch {
	case !n.hasRate():
		of = 8
	case n.prediction.basis < model.Pace, n.work < trustPages:
		of = 4
	}
	return (n.share + of - 1) / of
}

// assignPiece gives a node its next piece: a part of its share, but what lasts two leads at least.
func (p *policy) assignPiece(all []*need, n *need, last float64) {
	urls := n.part()
	if n.hasOwnRate() {
		lasts := unitsWithin(n.worker.time(), n.left()+n.share, min(2*n.lead, last)) - n.left()
		urls = min(max(urls, lasts), n.share)
	}
	hosts := p.pool.bySize()
	if len(hosts) == 0 {
		return
	}
	if large := hosts[0]; large.links > n.share && earliest(all, large.links) == n { // nobody is done with it sooner
		p.assign(large, n.worker)
		return
	}
	some := false
	for _, h := range hosts {
		if h.links <= urls {
			p.assign(h, n.worker)
			urls -= h.links
			some = true
		}
	}
	if small := hosts[len(hosts)-1]; !some && (small.links <= n.share || earliest(all, small.links) == n) {
		p.assign(small, n.worker)
	}
}

// maxImproved is how many hosts are split by what finds the shortest makespan for whole hosts.
const maxImproved = 2000

// assignAll gives all away that is pooled, so that all nodes end together.
func (p *policy) assignAll(all []*need) {
	hosts := slices.Clone(p.pool.bySize())
	if p.cfg.Splitter == Exact && len(hosts) <= maxImproved {
		sizes := make([]int, len(hosts))
		for i, h := range hosts {
			sizes[i] = h.links
		}
		for i, owner := range split.Hosts(times(all), sizes) {
			p.assign(hosts[i], all[owner].worker)
		}
		return
	}
	for _, h := range hosts { // the largest first, each to who is farthest from its share
		n := slices.MaxFunc(all, func(a, b *need) int { return cmp.Compare(a.share, b.share) })
		n.share -= h.links
		p.assign(h, n.worker)
	}
}

// widen gives more hosts to nodes whose workers are idle though URLs wait: politeness keeps them from these. Each gets
// as many as it has, within what a piece would be, but not more than an even part of all.
func (p *policy) widen(all []*need) {
	most := int(math.Ceil(float64(len(p.pool.hosts)) / float64(len(all))))
	for _, n := range all {
		if !n.width.needsHosts(p.Now()) || n.share == 0 {
			continue
		}
		n.worker.widen(p.Now())
		more, urls := min(max(1, n.load.Hosts), most), n.part()
		for _, h := range p.pool.bySize() {
			if more == 0 {
				break
			}
			if h.links <= urls {
				p.assign(h, n.worker)
				n.share, urls = n.share-h.links, urls-h.links
				more--
			}
		}
	}
}
