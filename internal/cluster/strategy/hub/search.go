package hub

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// A placementSearch is the search for a node that reaches a host. A new control unit starts it again when nodes repeat
// their requests.
type placementSearch struct {
	host     string
	network  string
	owner    strategy.Node   // owner that does not reach the host; "": none
	round    uint8           // failed rounds
	waiters  []strategy.Node // nodes to inform of the result
	probes   []probe
	claims   []claim   // of nodes that reach the host
	decideBy time.Time // deadline of the choice
	failed   []strategy.Node
}

// A claim is a node that reaches the host.
type claim struct {
	by   strategy.Node
	took time.Duration
}

// A probe is an outstanding probe request.
type probe struct {
	to      strategy.Node
	until   time.Time
	retries int
}

// maxWaiters is the maximum number of nodes that are informed of a decision; others must ask again.
const maxWaiters = 32

func (t *placementSearch) addWaiter(n strategy.Node) {
	if len(t.waiters) < maxWaiters && !slices.Contains(t.waiters, n) {
		t.waiters = append(t.waiters, n)
	}
}

func (t *placementSearch) probeIndex(n strategy.Node) int {
	return slices.IndexFunc(t.probes, func(q probe) bool { return q.to == n })
}

func (p *policy) search(host string, owner strategy.Node, r hosttable.Row) *placementSearch {
	t := p.searches[host]
	if t == nil {
		t = &placementSearch{host: host, owner: owner, round: r.Round &^ central.Moved}
		p.searches[host] = t
		if len(p.searches) == 1 {
			p.checkAt = p.Now().Add(p.cfg.DecisionWait / 2)
		}
	}
	return t
}

// probeNext requests a probe from the node that is probably nearest, of those that have not failed; with ProbeAll, from
// first or from all of them. It reports whether any probe is outstanding.
func (p *policy) probeNext(t *placementSearch, first strategy.Node) bool {
	var left []strategy.Node
	for _, n := range p.Members() {
		if !slices.Contains(t.failed, n) && t.probeIndex(n) < 0 {
			left = append(left, n)
		}
	}
	if len(left) == 0 {
		return len(t.probes) > 0
	}
	if i := slices.Index(left, p.SilentLeader()); i >= 0 && len(left) > 1 {
		left = slices.Delete(left, i, i+1) // it was silent; if it is dead, its lease will expire
	}
	if p.cfg.ProbeAll && first == "" {
		for _, n := range left {
			p.sendProbe(t, n)
		}
		return true
	}
	if p.cfg.ProbeAll && slices.Contains(left, first) {
		p.sendProbe(t, first)
		return true
	}
	p.sendProbe(t, p.probeOrder(left, t)[0])
	return true
}

// probeSeveral starts the first probes of a host without an owner.
func (p *policy) probeSeveral(t *placementSearch, first strategy.Node) {
	for range max(1, min(p.cfg.ParallelProbes, len(p.Members()))) {
		p.probeNext(t, first)
		if p.cfg.ProbeAll {
			return
		}
	}
}

// probeOrder sorts nodes by the order in which they should probe a host: by expected latency, weighted with their load.
func (p *policy) probeOrder(nodes []strategy.Node, t *placementSearch) []strategy.Node {
	cost, alike := make(map[strategy.Node]float64, len(nodes)), float64(p.cfg.SimilarLatency.Microseconds())
	for _, n := range nodes {
		away, _ := p.latencies.cost(n, t.host, t.network)
		cost[n] = (away + alike) * p.loadFactor(n)
	}
	start := tieBreak(t.host) % len(nodes)
	nodes = append(slices.Clone(nodes[start:]), nodes[:start]...)
	slices.SortStableFunc(nodes, func(a, b strategy.Node) int { return cmp.Compare(cost[a], cost[b]) })
	return nodes
}

// fewHosts smooths shares: differences of a few hosts do not matter.
const fewHosts = 8

// loadFactor returns a node's number of hosts and outstanding probes as a share of the mean, smoothed; never 0. A node
// that joined late owns little for a long time. If it has as much work as others, it does not get all new hosts.
func (p *policy) loadFactor(n strategy.Node) float64 {
	mean := float64(p.Hosts()+len(p.searches)) / float64(max(1, len(p.Members())))
	b := (float64(p.Count(n)+p.probeCount[n]) + fewHosts) / (mean + fewHosts)
	if b < 0.5 {
		b = max(b, min(1, p.balancer.share(n)))
	}
	return b
}

// choose grants a host to the nearest claimant. A node with more than its share of hosts counts as more distant.
func (p *policy) choose(t *placementSearch) {
	t.claims = slices.DeleteFunc(t.claims, func(c claim) bool { return !p.Alive(c.by) })
	if len(t.claims) == 0 {
		p.resume(t)
		return
	}
	best := slices.MinFunc(t.claims, func(a, b claim) int { return cmp.Compare(p.distance(a), p.distance(b)) })
	p.Grant(t.host, best.by)
	for _, c := range t.claims {
		t.addWaiter(c.by)
	}
	p.finish(t.host, best.by)
}

func (p *policy) distance(c claim) float64 {
	return (c.took + p.cfg.SimilarLatency).Seconds() * max(1, p.loadFactor(c.by))
}

func (p *policy) sendProbe(t *placementSearch, n strategy.Node) {
	t.probes = append(t.probes, probe{to: n, until: p.deadline(t)})
	p.probeCount[n]++
	p.RequestProbe(n, t.host, t.round)
}

// deadline returns the time by which a node should have answered a probe request.
func (p *policy) deadline(t *placementSearch) time.Time {
	return p.Now().Add(min(2*p.cfg.Timeout<<min(t.round, 10), p.cfg.RetryTimeout) + 8*p.cfg.Retry)
}

// decideDue chooses an owner in the searches whose deadline has passed.
func (p *policy) decideDue() {
	p.deciding = slices.DeleteFunc(p.deciding, func(t *placementSearch) bool {
		if p.searches[t.host] != t {
			return true // the search has ended
		}
		due := !t.decideBy.After(p.Now())
		if due {
			p.choose(t)
		}
		return due
	})
}

// finish ends a search and informs the waiting nodes.
func (p *policy) finish(host string, owner strategy.Node) {
	t := p.searches[host]
	if t == nil {
		return
	}
	p.removeSearch(t)
	for _, n := range t.waiters {
		if n != owner && n != t.owner {
			p.ReplyOwner(n, host, owner)
		}
	}
}

// resume continues a search without outstanding probes. If all nodes have failed, it parks the host, or in the last
// round assigns it to its owner for good.
func (p *policy) resume(t *placementSearch) {
	switch {
	case len(t.probes) > 0:
		return
	case len(t.claims) > 0:
		p.choose(t)
		return
	case p.probeNext(t, ""):
		return
	}
	owner := t.owner
	if owner != "" && !p.Alive(owner) {
		p.removeSearch(t) // takeover nodes will ask
		return
	}
	if owner == "" {
		owner = p.fallbackOwner(t)
	}
	if round := t.round + 1; int(round) < p.cfg.Rounds {
		p.Park(t.host, owner, round, t.failed, p.cfg.RetryDelay<<min(t.round, 10))
	} else {
		p.Set(t.host, hosttable.Row{Owner: owner, Round: round})
		p.ReplyOwned(owner, t.host)
	}
	t.owner = owner
	p.finish(t.host, owner)
}

// fallbackOwner returns the owner for a host that no node reaches: of the nodes that requested it, the one with the
// fewest hosts.
func (p *policy) fallbackOwner(t *placementSearch) strategy.Node {
	wants := slices.DeleteFunc(slices.Clone(t.waiters), func(n strategy.Node) bool { return !p.Alive(n) })
	if len(wants) == 0 {
		wants = p.Members()
	}
	if p.cfg.FetchFirst {
		return wants[0] // the first node has fetched from the host
	}
	return slices.MinFunc(wants, func(a, b strategy.Node) int { return cmp.Compare(p.loadFactor(a), p.loadFactor(b)) })
}

// checkProbes handles probes that were not answered in time: they are requested again, and finally count as failed.
func (p *policy) checkProbes() {
	if p.checkAt.After(p.Now()) || len(p.searches) == 0 {
		return
	}
	p.checkAt = p.Now().Add(p.cfg.DecisionWait / 2)
	var late []*placementSearch
	for _, t := range p.searches {
		if slices.ContainsFunc(t.probes, func(q probe) bool { return !q.until.After(p.Now()) || !p.Alive(q.to) }) {
			late = append(late, t)
		}
	}
	slices.SortFunc(late, func(a, b *placementSearch) int { return strings.Compare(a.host, b.host) })
	for _, t := range late {
		p.retryProbes(t)
		p.resume(t)
	}
}

func (p *policy) retryProbes(t *placementSearch) {
	for _, q := range slices.Clone(t.probes) {
		late := !q.until.After(p.Now()) && q.retries >= maxRetries // busy with other probes; a dead node would leave
		if late {
			t.failed = append(t.failed, q.to)
		}
		if late || !p.Alive(q.to) {
			p.dropProbe(t, q.to)
		}
	}
	for i := range t.probes {
		if q := &t.probes[i]; !q.until.After(p.Now()) {
			q.retries++
			q.until = p.deadline(t)
			p.RequestProbe(q.to, t.host, t.round)
		}
	}
}

// maxRetries is the maximum number of repeated probe requests to a node for one host.
const maxRetries = 20

// dropProbe drops an outstanding probe of a node.
func (p *policy) dropProbe(t *placementSearch, n strategy.Node) {
	if i := t.probeIndex(n); i >= 0 {
		t.probes = slices.Delete(t.probes, i, i+1)
		if p.probeCount[n]--; p.probeCount[n] <= 0 {
			delete(p.probeCount, n)
		}
	}
}

// removeSearch removes a search with its outstanding probes.
func (p *policy) removeSearch(t *placementSearch) {
	for _, q := range slices.Clone(t.probes) {
		p.dropProbe(t, q.to)
	}
	delete(p.searches, t.host)
}
