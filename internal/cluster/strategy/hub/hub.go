package hub

import (
	"fmt"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/leader"
)

// New returns the strategy of a node that knows nothing yet. What it owned in an earlier process the control unit tells
// it.
func New(cfg Config) *central.Strategy {
	cfg = cfg.withDefaults()
	return central.New(cfg.Config, func(l *central.Leader) central.Policy { return newPolicy(cfg, l) }, nil)
}

// A policy is what the control unit decides by, beside the table. Nothing of it is in the log: nodes ask, and tell
// their load, until they are answered.
type policy struct {
	*central.Leader
	cfg     Config
	checkAt time.Time // for searches that have waited too long

	searches   map[string]*placementSearch
	deciding   []*placementSearch    // that have a claim, in the order of their time
	probeCount map[strategy.Node]int // hosts that a node is being asked for
	latencies  latencyHints
	balancer   balancer
	offers     map[string]*offer // hosts that may move for load
}

var _ central.Policy = (*policy)(nil)

func newPolicy(cfg Config, l *central.Leader) *policy {
	return &policy{Leader: l, cfg: cfg, searches: map[string]*placementSearch{}, probeCount: map[strategy.Node]int{},
		latencies: newLatencyHints(), balancer: newLevel(), offers: map[string]*offer{}}
}

// Records are none.
func (p *policy) Records() leader.State { return nil }

// Elected begins a term.
func (p *policy) Elected() {}

// Deposed forgets what is under way.
func (p *policy) Deposed() {
	p.searches, p.deciding = map[string]*placementSearch{}, nil
	clear(p.probeCount)
	p.balancer, p.offers = newLevel(), map[string]*offer{}
}

// OwnerRequested has a host probed that is nobody's.
func (p *policy) OwnerRequested(from strategy.Node, host string, _ int) {
	t := p.search(host, "", p.Row(host))
	t.addWaiter(from)
	if len(t.probes)+len(t.claims) == 0 {
		p.probeSeveral(t, from)
	}
	if i := t.probeIndex(from); i >= 0 {
		p.RequestProbe(from, host, t.round) // once more, if it was lost
	} else {
		p.ReplyWait(from, host, p.cfg.DecisionWait)
	}
}

// HolderFound gives a host to who holds it, which sees whether it reaches it.
func (p *policy) HolderFound(from strategy.Node, host string) {
	p.Set(host, hosttable.Row{Owner: from, State: central.Parked})
	p.finish(host, from)
	p.ReplyOwnedProbe(from, host, 0)
}

// Came, Load, Advance and Due keep the nodes' loads level, and go on with searches.
func (p *policy) MoveCompleted(_ string, r hosttable.Row) { p.balancer.moveCompleted(p.Now(), r) }

// LoadReported takes in what a node tells.
func (p *policy) LoadReported(e strategy.Load) { p.balancer.update(p.Now(), e) }

// Advance does what is due.
func (p *policy) Advance() {
	p.decideDue()
	p.checkProbes()
	p.balance()
}

// NextDue is when something is; zero: nothing is.
func (p *policy) NextDue() (at time.Time) {
	if p.balancer.checkAt.After(p.Now()) {
		at = p.balancer.checkAt
	}
	if len(p.searches) > 0 {
		at = central.Earliest(at, p.checkAt)
	}
	if len(p.deciding) > 0 {
		at = central.Earliest(at, p.deciding[0].decideBy)
	}
	return at
}

// String says how much is under way.
func (p *policy) String() string {
	return fmt.Sprintf("searches %d, offers %d", len(p.searches), len(p.offers))
}
