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

// A need is a node's demand for work.
type need struct {
	*worker
	has    int        // URLs that it still has to fetch, see worker.expected; rounded up
	time   split.Time // for URLs in addition to these
	endsIn float64    // seconds until it finishes these
	lowIn  float64    // seconds until it has too little work
	share  int        // URLs of the pool that it should get
	lead   float64    // seconds; with less work the node gets more
}

// needs returns the nodes that may get work.
func (p *policy) needs() (all []*need) {
	lead, whole := p.lead(), p.pool.hasWholeHosts()
	for _, w := range p.activeWorkers() {
		f, left := w.time(), w.expected(p.Now())
		has, took := int(math.Ceil(left)), w.delivery.took.Seconds()
		if !whole {
			took -= p.reportWait()
		}
		n := &need{worker: w, has: has, lead: max(lead, took),
			time: func(n int) float64 {
				if has+n <= 0 {
					return 0
				}
				return f(has+n) * (left + float64(n)) / float64(has+n)
			}}
		if left > 0 {
			n.endsIn = n.time(0)
			n.lowIn = n.endsIn
			if w.load.Busy >= idleBusy { // its workers may be the limit
				n.lowIn -= n.endsIn * min(1, w.inFlight/left)
			}
		}
		all = append(all, n)
	}
	return all
}

// reportWait returns how many seconds sooner a node with little work reports that links have arrived.
func (p *policy) reportWait() float64 {
	if p.cfg.ShortBeat == 0 {
		return 0
	}
	return (p.cfg.Beat - p.cfg.ShortBeat).Seconds() * 3 / 4
}

func times(all []*need) (times []split.Time) {
	for _, n := range all {
		times = append(times, n.time)
	}
	return times
}

// earliestNode returns the node for a host that is not pooled.
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

// earliest returns the node that would finish first with additional URLs.
func earliest(all []*need, urls int) *need {
	return slices.MinFunc(all, func(a, b *need) int { return cmp.Compare(a.time(urls), b.time(urls)) })
}

// The rest of the pool is assigned when all nodes would finish within some leads. Pieces last for some leads, too. Whole
// hosts need more, since politeness delays their URLs.
const (
	assignHostsAt  = 4
	assignSlicesAt = 1
	// minimum pieces
	hostLeads  = 2
	sliceLeads = 1
	// lead of slices as a share of Config.MinWork; it can be short, since nodes with little work report often
	sliceLead = 0.35
)

// lead returns the least seconds of work below which a node gets more; nodes that links reach later get it sooner.
func (p *policy) lead() float64 {
	if p.pool.hasWholeHosts() {
		return p.cfg.MinWork.Seconds()
	}
	return sliceLead * p.cfg.MinWork.Seconds()
}

// assignAllAt returns how many seconds before the expected end the rest of the pool is assigned.
func (p *policy) assignAllAt() float64 {
	leads := assignSlicesAt
	if p.pool.hasWholeHosts() {
		leads = assignHostsAt
	}
	return float64(leads) * p.lead()
}

// split assigns pooled hosts to nodes that need more work.
func (p *policy) split() {
	if len(p.pool.hosts) == 0 {
		return
	}
	all := p.needs()
	nodes := times(all)
	if p.cfg.Splitter == Paper {
		for i, count := range split.Swarm(nodes, p.pool.links, split.SwarmConfig{Seed: p.cfg.Seed}) {
			all[i].share = count
		}
		p.assignAll(all)
		return
	}
	last := 0.0
	for i, count := range split.Exact(nodes, p.pool.links) {
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
		if n.lowIn < n.lead && n.share > 0 && (n.hasOwnRate() || n.has == 0) {
			p.assignPiece(all, n, last)
		}
	}
}

// part returns half of the node's share, or less while its speed in this crawl is unknown.
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

// assignPiece assigns a node its next piece: a part of its share, but at least work for some leads.
func (p *policy) assignPiece(all []*need, n *need, last float64) {
	urls := n.part()
	if n.hasOwnRate() {
		leads := sliceLeads
		if p.pool.hasWholeHosts() {
			leads = hostLeads
		}
		lasts := unitsWithin(n.worker.time(), n.has+n.share, min(float64(leads)*n.lead, last)) - n.has
		urls = min(max(urls, lasts), n.share)
	}
	hosts := p.pool.bySize()
	if len(hosts) == 0 {
		return
	}
	if large := hosts[0]; large.links > n.share && earliest(all, large.links) == n { // no node would finish it sooner
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

// maxImproved is the maximum number of hosts for which assignAll searches for the shortest makespan of whole hosts.
const maxImproved = 2000

// assignAll assigns the rest of the pool so that all nodes finish at the same time.
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
	for _, h := range hosts { // largest first, each to the node farthest below its share
		n := slices.MaxFunc(all, func(a, b *need) int { return cmp.Compare(a.share, b.share) })
		n.share -= h.links
		p.assign(h, n.worker)
	}
}

// widen assigns more hosts to nodes whose workers are idle although URLs are pending, which means that politeness
// delays these. A node gets as many hosts as it has, but not more than a piece or than an equal part of the pool.
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
