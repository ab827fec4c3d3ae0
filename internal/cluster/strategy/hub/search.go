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
	host    string
	network string
	owner   strategy.Node   // holds it and does not reach it; "": nobody does
	round   uint8           // that have failed
	wants   []strategy.Node // who waits to hear of it
	asked   []question
	claims  []claim   // of which one is chosen
	until   time.Time // when that is done at the latest
	failed  []strategy.Node
}

// A claim is a node that reaches a host.
type claim struct {
	by   strategy.Node
	took time.Duration
}

// A question is a node that was asked to probe.
type question struct {
	to    strategy.Node
	until time.Time
	again int
}

// maxWants is how many nodes are told of a decision without asking again.
const maxWants = 32

func (t *placementSearch) want(n strategy.Node) {
	if len(t.wants) < maxWants && !slices.Contains(t.wants, n) {
		t.wants = append(t.wants, n)
	}
}

func (t *placementSearch) question(n strategy.Node) int {
	return slices.IndexFunc(t.asked, func(q question) bool { return q.to == n })
}

func (p *policy) search(host string, owner strategy.Node, r hosttable.Row) *placementSearch {
	t := p.searches[host]
	if t == nil {
		t = &placementSearch{host: host, owner: owner, round: r.Round &^ central.Moved}
		p.searches[host] = t
		if len(p.searches) == 1 {
			p.lookAt = p.Now().Add(p.cfg.Wait / 2)
		}
	}
	return t
}

// askSomebody asks the node that is likely to be nearest of those that have not failed, or all of them: first rather
// than others if nothing is known of any. It reports whether there is one.
func (p *policy) askSomebody(t *placementSearch, first strategy.Node) bool {
	var left []strategy.Node
	for _, n := range p.Members() {
		if !slices.Contains(t.failed, n) && t.question(n) < 0 {
			left = append(left, n)
		}
	}
	if len(left) == 0 {
		return len(t.asked) > 0
	}
	if i := slices.Index(left, p.Silent()); i >= 0 && len(left) > 1 {
		left = slices.Delete(left, i, i+1) // it was silent: its lease will tell whether it is dead
	}
	if p.cfg.AskAll && first == "" {
		for _, n := range left {
			p.question(t, n)
		}
		return true
	}
	if p.cfg.AskAll && slices.Contains(left, first) {
		p.question(t, first)
		return true
	}
	p.question(t, p.sorted(left, t)[0])
	return true
}

// askFirst asks some nodes at once for a host that nobody owns.
func (p *policy) askFirst(t *placementSearch, first strategy.Node) {
	for range max(1, min(p.cfg.Ask, len(p.Members()))) {
		p.askSomebody(t, first)
		if p.cfg.AskAll {
			return
		}
	}
}

// sorted are nodes in the order in which they are asked: those that are likely to be near first, and of those alike who
// has the fewest hosts.
func (p *policy) sorted(nodes []strategy.Node, t *placementSearch) []strategy.Node {
	cost, alike := make(map[strategy.Node]float64, len(nodes)), float64(p.cfg.Alike.Microseconds())
	for _, n := range nodes {
		away, _ := p.near.cost(n, t.host, t.network)
		cost[n] = (away + alike) * p.load(n)
	}
	start := spread(t.host) % len(nodes)
	nodes = append(slices.Clone(nodes[start:]), nodes[:start]...)
	slices.SortStableFunc(nodes, func(a, b strategy.Node) int { return cmp.Compare(cost[a], cost[b]) })
	return nodes
}

// few is how many hosts are so few that it does not matter whose they are.
const few = 8

// load is how many hosts a node has, as a share of the mean, and how many it is being asked for; never 0. A node that
// has come late owns little for long: it is not given all that is found if it has as much to do as others.
func (p *policy) load(n strategy.Node) float64 {
	mean := float64(p.Hosts()+len(p.searches)) / float64(max(1, len(p.Members())))
	b := (float64(p.Count(n)+p.asking[n]) + few) / (mean + few)
	if b < 0.5 {
		b = max(b, min(1, p.level.share(n)))
	}
	return b
}

// choose grants a host to the claimant that is nearest, or has less to do: who has more than its share of the hosts
// counts as farther away.
func (p *policy) choose(t *placementSearch) {
	t.claims = slices.DeleteFunc(t.claims, func(c claim) bool { return !p.Alive(c.by) })
	if len(t.claims) == 0 {
		p.goOn(t)
		return
	}
	best := slices.MinFunc(t.claims, func(a, b claim) int { return cmp.Compare(p.distance(a), p.distance(b)) })
	p.Grant(t.host, best.by)
	for _, c := range t.claims {
		t.want(c.by)
	}
	p.conclude(t.host, best.by)
}

func (p *policy) distance(c claim) float64 {
	return (c.took + p.cfg.Alike).Seconds() * max(1, p.load(c.by))
}

func (p *policy) question(t *placementSearch, n strategy.Node) {
	t.asked = append(t.asked, question{to: n, until: p.deadline(t)})
	p.asking[n]++
	p.Probe(n, t.host, t.round)
}

// deadline is until when a node should have said whether it reaches a host.
func (p *policy) deadline(t *placementSearch) time.Time {
	return p.Now().Add(min(2*p.cfg.Timeout<<min(t.round, 10), p.cfg.Most) + 8*p.cfg.Retry)
}

// decide chooses where those who are farther away were waited for long enough.
func (p *policy) decide() {
	p.deciding = slices.DeleteFunc(p.deciding, func(t *placementSearch) bool {
		if p.searches[t.host] != t {
			return true // it is over
		}
		due := !t.until.After(p.Now())
		if due {
			p.choose(t)
		}
		return due
	})
}

// conclude ends a search, and tells those who wait.
func (p *policy) conclude(host string, owner strategy.Node) {
	t := p.searches[host]
	if t == nil {
		return
	}
	p.end(t)
	for _, n := range t.wants {
		if n != owner && n != t.owner {
			p.Theirs(n, host, owner)
		}
	}
}

// goOn asks the next one if nobody is being asked; if none is left, the host is parked, or its owner left alone with
// it.
func (p *policy) goOn(t *placementSearch) {
	switch {
	case len(t.asked) > 0:
		return
	case len(t.claims) > 0:
		p.choose(t)
		return
	case p.askSomebody(t, ""):
		return
	}
	owner := t.owner
	if owner != "" && !p.Alive(owner) {
		p.end(t) // its heirs will ask
		return
	}
	if owner == "" {
		owner = p.fallbackOwner(t)
	}
	if round := t.round + 1; int(round) < p.cfg.Rounds {
		p.Park(t.host, owner, round, t.failed, p.cfg.Rest<<min(t.round, 10))
	} else {
		p.Set(t.host, hosttable.Row{Owner: owner, Round: round})
		p.Yours(owner, t.host)
	}
	t.owner = owner
	p.conclude(t.host, owner)
}

// fallbackOwner is who owns a host that nobody reaches: of those who wanted it, who has the fewest hosts.
func (p *policy) fallbackOwner(t *placementSearch) strategy.Node {
	wants := slices.DeleteFunc(slices.Clone(t.wants), func(n strategy.Node) bool { return !p.Alive(n) })
	if len(wants) == 0 {
		wants = p.Members()
	}
	if p.cfg.FetchFirst {
		return wants[0] // who wanted it has something of it
	}
	return slices.MinFunc(wants, func(a, b strategy.Node) int { return cmp.Compare(p.load(a), p.load(b)) })
}

// judge looks for nodes that were asked and have not answered: they are asked once more, then given up.
func (p *policy) judge() {
	if p.lookAt.After(p.Now()) || len(p.searches) == 0 {
		return
	}
	p.lookAt = p.Now().Add(p.cfg.Wait / 2)
	var late []*placementSearch
	for _, t := range p.searches {
		if slices.ContainsFunc(t.asked, func(q question) bool { return !q.until.After(p.Now()) || !p.Alive(q.to) }) {
			late = append(late, t)
		}
	}
	slices.SortFunc(late, func(a, b *placementSearch) int { return strings.Compare(a.host, b.host) })
	for _, t := range late {
		p.retryProbes(t)
		p.goOn(t)
	}
}

func (p *policy) retryProbes(t *placementSearch) {
	for _, q := range slices.Clone(t.asked) {
		late := !q.until.After(p.Now()) && q.again >= patient // it has much to probe; who is dead is none of the members soon
		if late {
			t.failed = append(t.failed, q.to)
		}
		if late || !p.Alive(q.to) {
			p.unask(t, q.to)
		}
	}
	for i := range t.asked {
		if q := &t.asked[i]; !q.until.After(p.Now()) {
			q.again++
			q.until = p.deadline(t)
			p.Probe(q.to, t.host, t.round)
		}
	}
}

// patient is how often a node is asked again for one host.
const patient = 20

// unask notes that a node's answer is not waited for any more.
func (p *policy) unask(t *placementSearch, n strategy.Node) {
	if i := t.question(n); i >= 0 {
		t.asked = slices.Delete(t.asked, i, i+1)
		if p.asking[n]--; p.asking[n] <= 0 {
			delete(p.asking, n)
		}
	}
}

// end ends a search.
func (p *policy) end(t *placementSearch) {
	for _, q := range slices.Clone(t.asked) {
		p.unask(t, q.to)
	}
	delete(p.searches, t.host)
}
