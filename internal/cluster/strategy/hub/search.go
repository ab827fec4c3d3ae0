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

// A placementSearch is the search for a node that reaches a host. It is lost with its control unit; nodes ask again,
// and it begins anew.
type placementSearch struct {
	host     string
	network  string
	owner    strategy.Node   // holds it and does not reach it; "": nobody does
	round    uint8           // that have failed
	waiters  []strategy.Node // who waits to hear of it
	probes   []probe
	claims   []claim   // of which one is chosen
	decideBy time.Time // when that is done at the latest
	failed   []strategy.Node
}

// A claim is a node that reaches a host.
type claim struct {
	by   strategy.Node
	took time.Duration
}

// A question is a node that was asked to probe.
type probe struct {
	to      strategy.Node
	until   time.Time
	retries int
}

// maxWaiters is how many nodes are told of a decision without asking again.
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

// probeNext asks the node that is likely to be nearest of those that have not failed, or all of them: first rather
// than others if nothing is known of any. It reports whether there is one.
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
		left = slices.Delete(left, i, i+1) // it was silent: its lease will tell whether it is dead
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

// probeSeveral asks some nodes at once for a host that nobody owns.
func (p *policy) probeSeveral(t *placementSearch, first strategy.Node) {
	for range max(1, min(p.cfg.ParallelProbes, len(p.Members()))) {
		p.probeNext(t, first)
		if p.cfg.ProbeAll {
			return
		}
	}
}

// probeOrder are nodes in the order in which they are asked: those that are likely to be near first, and of those alike who
// has the fewest hosts.
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

// fewHosts is how many hosts are so few that it does not matter whose they are.
const fewHosts = 8

// loadFactor is how many hosts a node has, as a share of the mean, and how many it is being asked for; never 0. A node that
// has come late owns little for long: it is not given all that is found if it has as much to do as others.
func (p *policy) loadFactor(n strategy.Node) float64 {
	mean := float64(p.Hosts()+len(p.searches)) / float64(max(1, len(p.Members())))
	b := (float64(p.Count(n)+p.probeCount[n]) + fewHosts) / (mean + fewHosts)
	if b < 0.5 {
		b = max(b, min(1, p.balancer.share(n)))
	}
	return b
}

// choose grants a host to the claimant that is nearest, or has less to do: who has more than its share of the hosts
// counts as farther away.
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

// deadline is until when a node should have said whether it reaches a host.
func (p *policy) deadline(t *placementSearch) time.Time {
	return p.Now().Add(min(2*p.cfg.Timeout<<min(t.round, 10), p.cfg.MaxTimeout) + 8*p.cfg.Retry)
}

// decideDue chooses where those who are farther away were waited for long enough.
func (p *policy) decideDue() {
	p.deciding = slices.DeleteFunc(p.deciding, func(t *placementSearch) bool {
		if p.searches[t.host] != t {
			return true // it is over
		}
		due := !t.decideBy.After(p.Now())
		if due {
			p.choose(t)
		}
		return due
	})
}

// finish ends a search, and tells those who wait.
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

// resume asks the next one if nobody is being asked; if none is left, the host is parked, or its owner left alone with
// it.
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
		p.removeSearch(t) // its heirs will ask
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

// fallbackOwner is who owns a host that nobody reaches: of those who wanted it, who has the fewest hosts.
func (p *policy) fallbackOwner(t *placementSearch) strategy.Node {
	wants := slices.DeleteFunc(slices.Clone(t.waiters), func(n strategy.Node) bool { return !p.Alive(n) })
	if len(wants) == 0 {
		wants = p.Members()
	}
	if p.cfg.FetchFirst {
		return wants[0] // who wanted it has something of it
	}
	return slices.MinFunc(wants, func(a, b strategy.Node) int { return cmp.Compare(p.loadFactor(a), p.loadFactor(b)) })
}

// checkProbes looks for nodes that were asked and have not answered: they are asked once more, then given up.
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
		late := !q.until.After(p.Now()) &&
			q.retries >= maxRetries // it has much to probe; who is dead is none of the members soon
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

// maxRetries is how often a node is asked again for one host.
const maxRetries = 20

// dropProbe notes that a node's answer is not waited for any more.
func (p *policy) dropProbe(t *placementSearch, n strategy.Node) {
	if i := t.probeIndex(n); i >= 0 {
		t.probes = slices.Delete(t.probes, i, i+1)
		if p.probeCount[n]--; p.probeCount[n] <= 0 {
			delete(p.probeCount, n)
		}
	}
}

// removeSearch ends a search.
func (p *policy) removeSearch(t *placementSearch) {
	for _, q := range slices.Clone(t.probes) {
		p.dropProbe(t, q.to)
	}
	delete(p.searches, t.host)
}
