// Package budget divides a crawl's page limit among its nodes, so that together they never fetch more pages.
//
// One node divides: every few seconds it reads what all nodes have used, and grants more to those that need it. A
// grant is a number of pages over all runs of a node. The pieces are large at first, and shrink as the limit comes
// nearer. Near the end, the divider also takes back grants of nodes that do not use them. A node may have requests in
// progress when its grant is lowered, so the old grant counts against the limit until the node has reported how many
// pages it still may fetch.
//
// A Budget is plain data. It is stored where all nodes read it, and replaced by compare-and-swap, so that two nodes
// that divide at the same time cannot grant the same page twice.
package budget

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"kumo/internal/cluster/strategy"
)

// A Budget is the division of a page limit.
type Budget struct {
	Limit  int64                   `json:"limit"`
	Gone   int64                   `json:"gone"`  // pages of nodes that are no longer in Shares
	Round  uint64                  `json:"round"` // of the last change of a grant
	Shares map[strategy.Node]Share `json:"shares,omitempty"`
}

// A Share is a node's part of the limit, in pages over all its runs.
type Share struct {
	Used   int64  `json:"used"`            // fetched, by the node's last report that the divider needed
	Grant  int64  `json:"grant"`           // may be fetched
	Charge int64  `json:"charge"`          // counts against the limit: at least Used, Grant, and an earlier grant in use
	Round  uint64 `json:"round"`           // of the last change of Grant
	Final  bool   `json:"final,omitempty"` // the node has ended for good, and Used is exact
}

// A Report is what a node has used, and what it may use at most.
type Report struct {
	Used    int64  `json:"used"`
	Ceiling int64  `json:"ceiling"` // the grant that the node obeys, or more if more is in progress
	Round   uint64 `json:"round"`   // of that grant
}

// A Node is the state of a node, as known to the divider.
type Node struct {
	Report
	Busy    bool    // it has pending URLs or requests in progress
	Stalled bool    // it has used nothing of its grant for a while
	Rate    float64 // pages per second
}

// Parse decodes a budget; nil if there is none.
func Parse(value []byte) (*Budget, error) {
	if value == nil {
		return nil, nil
	}
	b := new(Budget)
	if err := json.Unmarshal(value, b); err != nil {
		return nil, fmt.Errorf("read the division of the page limit: %w", err)
	}
	return b, nil
}

// New returns the budget of a crawl whose departed nodes have fetched gone pages. The nodes may still report rounds of
// an earlier budget.
func New(gone int64, nodes map[strategy.Node]Node) *Budget {
	b := &Budget{Gone: gone, Shares: map[strategy.Node]Share{}}
	for _, n := range nodes {
		b.Round = max(b.Round, n.Round)
	}
	return b
}

// Clone returns a copy.
func (b *Budget) Clone() *Budget {
	c := *b
	if c.Shares = maps.Clone(b.Shares); c.Shares == nil {
		c.Shares = map[strategy.Node]Share{}
	}
	return &c
}

// Used returns the number of pages that all nodes have fetched.
func (b *Budget) Used() int64 {
	sum := b.Gone
	for _, s := range b.Shares {
		sum += s.Used
	}
	return sum
}

// SetFinal records the exact number of pages of a node that has ended for good. It reports whether the budget lists the
// node.
func (b *Budget) SetFinal(n strategy.Node, used int64) bool {
	s, is := b.Shares[n]
	if !is {
		return false
	}
	s.Used, s.Final = max(s.Used, used), true
	b.Shares[n] = s
	return true
}

// SetUsed applies reports, one for each present node. It reports whether nodes were removed: those that are gone and
// have a final number, or for which drop returns true. Until then, a node that is gone counts with its whole grant.
func (b *Budget) SetUsed(nodes map[strategy.Node]Node, isPresent, drop func(strategy.Node) bool) (removed bool) {
	for name, n := range nodes {
		s := b.Shares[name]
		s.Used = max(s.Used, n.Used)
		if n.Round >= s.Round { // it obeys the current grant
			s.Grant = max(s.Grant, n.Ceiling)
			s.Charge = s.Grant
		}
		s.Charge = max(s.Charge, s.Used)
		b.Shares[name] = s
	}
	for name, s := range b.Shares {
		if isPresent(name) || !s.Final && !drop(name) {
			continue
		}
		b.Gone += s.Used
		delete(b.Shares, name)
		removed = true
	}
	return removed
}

// tailPages and tailSeconds define the end of a crawl, in which the whole rest of the limit is granted: so many pages a
// node, or so many seconds at the nodes' rates.
const (
	tailPages   = 64
	tailSeconds = 10
)

// Divide changes grants as needed for a limit, and reports whether there was anything to change.
func (b *Budget) Divide(limit int64, nodes map[strategy.Node]Node) (changed bool) {
	changed = b.Limit != limit
	b.Limit = limit
	d := divider{Budget: b, nodes: nodes, names: slices.Sorted(maps.Keys(nodes)), rest: max(limit-b.Used(), 0)}
	d.setTargets()
	pool := max(limit-b.charged(), 0)
	var needy []strategy.Node
	missing := int64(0)
	for _, name := range d.names {
		if open, target := d.open(name), d.targets[name]; d.obeys(name) && d.nodes[name].Busy && 2*open < target {
			needy = append(needy, name)
			missing += target - open
		}
	}
	if len(needy) == 0 {
		return changed
	}
	if missing > pool {
		changed = d.revokeGrants() || changed
	}
	for i, name := range needy {
		each := (pool + int64(len(needy)-i) - 1) / int64(len(needy)-i)
		more := min(d.targets[name]-d.open(name), each)
		if more <= 0 {
			continue
		}
		pool -= more
		d.setGrant(name, b.Shares[name].Grant+more)
		changed = true
	}
	return changed
}

// charged returns the number of pages that count against the limit.
func (b *Budget) charged() int64 {
	sum := b.Gone
	for _, s := range b.Shares {
		if s.Final {
			sum += s.Used
		} else {
			sum += s.Charge
		}
	}
	return sum
}

// A divider is one call of Divide.
type divider struct {
	*Budget
	nodes   map[strategy.Node]Node
	names   []strategy.Node         // of nodes, sorted
	rest    int64                   // pages up to the limit
	targets map[strategy.Node]int64 // the numbers of pages that the nodes should have to fetch
}

// open returns the number of pages that a node may still fetch.
func (d *divider) open(n strategy.Node) int64 { return max(d.Shares[n].Grant-d.Shares[n].Used, 0) }

// obeys reports whether a node has applied its last grant.
func (d *divider) obeys(n strategy.Node) bool { return d.nodes[n].Round >= d.Shares[n].Round }

func (d *divider) setGrant(n strategy.Node, grant int64) {
	s := d.Shares[n]
	d.Round++
	s.Grant, s.Charge, s.Round = grant, max(s.Charge, grant), d.Round
	d.Shares[n] = s
}

// setTargets divides the rest: at first half of it among the busy nodes, and little among the others, so that they can
// begin at once; at the end all of it among the busy nodes that use their grants.
func (d *divider) setTargets() {
	busy, rate := int64(0), 0.0
	for _, n := range d.nodes {
		if rate += n.Rate; n.Busy && !n.Stalled {
			busy++
		}
	}
	all := int64(len(d.nodes))
	tail := d.rest <= max(tailPages*all, int64(tailSeconds*rate))
	d.targets = make(map[strategy.Node]int64, len(d.nodes))
	for name, n := range d.nodes {
		active := n.Busy && (!n.Stalled || busy == 0)
		switch {
		case active && tail:
			d.targets[name] = (d.rest + max(busy, 1) - 1) / max(busy, 1)
		case active:
			d.targets[name] = d.rest / (2 * max(busy, 1))
		case !tail:
			d.targets[name] = d.rest / (8 * all)
		}
	}
}

// revokeGrants lowers the grants of nodes that have more than their targets. What they return can be granted once they
// obey.
func (d *divider) revokeGrants() (changed bool) {
	for _, name := range d.names {
		if s := d.Shares[name]; d.obeys(name) && d.open(name) > d.targets[name] {
			s.Charge = max(s.Charge, s.Grant)
			d.Shares[name] = s
			d.setGrant(name, s.Used+d.targets[name])
			changed = true
		}
	}
	return changed
}
