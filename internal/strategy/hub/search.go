package hub

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"kumo/internal/strategy"
	"kumo/internal/strategy/hub/hosttable"
	"kumo/internal/strategy/leader"
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

func (u *controller) search(host string, owner strategy.Node, r hosttable.Row) *placementSearch {
	t := u.searches[host]
	if t == nil {
		t = &placementSearch{host: host, owner: owner, round: r.Round &^ roundMoved}
		u.searches[host] = t
		if len(u.searches) == 1 {
			u.lookAt = u.now.Add(u.cfg.Wait / 2)
		}
	}
	return t
}

// askSomebody asks the node that is likely to be nearest of those that have not failed, or all of them: first rather
// than others if nothing is known of any. It reports whether there is one.
func (u *controller) askSomebody(t *placementSearch, first strategy.Node) bool {
	var left []strategy.Node
	for _, n := range u.members {
		if !slices.Contains(t.failed, n) && t.question(n) < 0 {
			left = append(left, n)
		}
	}
	if len(left) == 0 {
		return len(t.asked) > 0
	}
	if i := slices.Index(left, u.mute); i >= 0 && len(left) > 1 {
		left = slices.Delete(left, i, i+1) // it was silent: its lease will tell whether it is dead
	}
	if u.cfg.AskAll && first == "" {
		for _, n := range left {
			u.question(t, n)
		}
		return true
	}
	if u.cfg.AskAll && slices.Contains(left, first) {
		u.question(t, first)
		return true
	}
	u.question(t, u.sorted(left, t)[0])
	return true
}

// askFirst asks some nodes at once for a host that nobody owns.
func (u *controller) askFirst(t *placementSearch, first strategy.Node) {
	for range max(1, min(u.cfg.Ask, len(u.members))) {
		u.askSomebody(t, first)
		if u.cfg.AskAll {
			return
		}
	}
}

// sorted are nodes in the order in which they are asked: those that are likely to be near first, and of those alike who
// has the fewest hosts.
func (u *controller) sorted(nodes []strategy.Node, t *placementSearch) []strategy.Node {
	cost, alike := make(map[strategy.Node]float64, len(nodes)), float64(u.cfg.Alike.Microseconds())
	for _, n := range nodes {
		cost[n] = (u.near.cost(n, t.host, t.network) + alike) * u.load(n)
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
func (u *controller) load(n strategy.Node) float64 {
	mean := float64(u.table.Len()+len(u.searches)) / float64(max(1, len(u.members)))
	b := (float64(u.table.Count(n)+u.promised[n]+u.asking[n]) + few) / (mean + few)
	if b < 0.5 {
		b = max(b, min(1, u.level.share(n)))
	}
	return b
}

// choose grants a host to the claimant that is nearest, or has less to do: who has more than its share of the hosts
// counts as farther away.
func (u *controller) choose(t *placementSearch) {
	t.claims = slices.DeleteFunc(t.claims, func(c claim) bool { return !u.alive[c.by] })
	if len(t.claims) == 0 {
		u.goOn(t)
		return
	}
	best := slices.MinFunc(t.claims, func(a, b claim) int { return cmp.Compare(u.distance(a), u.distance(b)) })
	u.set(t.host, hosttable.Row{Owner: best.by})
	u.promised[best.by]++
	u.answer(best.by, item{kind: itemYours, host: t.host})
	for _, c := range t.claims {
		t.want(c.by)
	}
	u.conclude(t.host, best.by)
}

func (u *controller) distance(c claim) float64 {
	return (c.took + u.cfg.Alike).Seconds() * max(1, u.load(c.by))
}

func (u *controller) question(t *placementSearch, n strategy.Node) {
	t.asked = append(t.asked, question{to: n, until: u.deadline(t)})
	u.asking[n]++
	u.post(n, leader.Answer, item{kind: itemProbe, host: t.host, number: uint64(t.round)})
}

// deadline is until when a node should have said whether it reaches a host.
func (u *controller) deadline(t *placementSearch) time.Time {
	return u.now.Add(min(2*u.cfg.Timeout<<min(t.round, 10), u.cfg.Most) + 8*u.cfg.Retry)
}

// decide chooses where those who are farther away were waited for long enough.
func (u *controller) decide() {
	u.deciding = slices.DeleteFunc(u.deciding, func(t *placementSearch) bool {
		if u.searches[t.host] != t {
			return true // it is over
		}
		due := !t.until.After(u.now)
		if due {
			u.choose(t)
		}
		return due
	})
}

// conclude ends a search, and tells those who wait.
func (u *controller) conclude(host string, owner strategy.Node) {
	t := u.searches[host]
	if t == nil {
		return
	}
	u.end(t)
	for _, n := range t.wants {
		if n != owner && n != t.owner {
			u.answer(n, item{kind: itemOwner, host: host, node: owner})
		}
	}
}

// goOn asks the next one if nobody is being asked; if none is left, the host is parked, or its owner left alone with
// it.
func (u *controller) goOn(t *placementSearch) {
	switch {
	case len(t.asked) > 0:
		return
	case len(t.claims) > 0:
		u.choose(t)
		return
	case u.askSomebody(t, ""):
		return
	}
	owner := t.owner
	if owner != "" && !u.alive[owner] {
		u.end(t) // its heirs will ask
		return
	}
	if owner == "" {
		owner = u.fallbackOwner(t)
	}
	r := hosttable.Row{Owner: owner, State: rowParked, Round: t.round + 1}
	rest := u.cfg.Rest << min(t.round, 10)
	it := item{kind: itemRest, host: t.host, number: uint64(rest.Milliseconds())}
	if int(r.Round) >= u.cfg.Rounds {
		r.State = rowReached
		it = item{kind: itemYours, host: t.host}
	}
	if u.set(t.host, r); r.State == rowParked {
		u.remark(t.host, note{t.failed, uint64(u.now.Add(rest).Unix())})
	}
	u.answer(owner, it)
	t.owner = owner
	u.conclude(t.host, owner)
}

// fallbackOwner is who owns a host that nobody reaches: of those who wanted it, who has the fewest hosts.
func (u *controller) fallbackOwner(t *placementSearch) strategy.Node {
	wants := slices.DeleteFunc(slices.Clone(t.wants), func(n strategy.Node) bool { return !u.alive[n] })
	if len(wants) == 0 {
		wants = u.members
	}
	if u.cfg.FetchFirst {
		return wants[0] // who wanted it has something of it
	}
	return slices.MinFunc(wants, func(a, b strategy.Node) int { return cmp.Compare(u.load(a), u.load(b)) })
}

// judge looks for nodes that were asked and have not answered: they are asked once more, then given up.
func (u *controller) judge() {
	if u.lookAt.After(u.now) || len(u.searches) == 0 {
		return
	}
	u.lookAt = u.now.Add(u.cfg.Wait / 2)
	var late []*placementSearch
	for _, t := range u.searches {
		if slices.ContainsFunc(t.asked, func(q question) bool { return !q.until.After(u.now) || !u.alive[q.to] }) {
			late = append(late, t)
		}
	}
	slices.SortFunc(late, func(a, b *placementSearch) int { return strings.Compare(a.host, b.host) })
	for _, t := range late {
		u.retryProbes(t)
		u.goOn(t)
	}
}

func (u *controller) retryProbes(t *placementSearch) {
	for _, q := range slices.Clone(t.asked) {
		late := !q.until.After(u.now) && q.again >= patient // it has much to probe; who is dead is none of the members soon
		if late {
			t.failed = append(t.failed, q.to)
		}
		if late || !u.alive[q.to] {
			u.unask(t, q.to)
		}
	}
	for i := range t.asked {
		if q := &t.asked[i]; !q.until.After(u.now) {
			q.again++
			q.until = u.deadline(t)
			u.post(q.to, leader.Answer, item{kind: itemProbe, host: t.host, number: uint64(t.round)})
		}
	}
}

// patient is how often a node is asked again for one host.
const patient = 20

// unask notes that a node's answer is not waited for any more.
func (u *controller) unask(t *placementSearch, n strategy.Node) {
	if i := t.question(n); i >= 0 {
		t.asked = slices.Delete(t.asked, i, i+1)
		if u.asking[n]--; u.asking[n] <= 0 {
			delete(u.asking, n)
		}
	}
}

// end ends a search.
func (u *controller) end(t *placementSearch) {
	for _, q := range slices.Clone(t.asked) {
		u.unask(t, q.to)
	}
	delete(u.searches, t.host)
}
