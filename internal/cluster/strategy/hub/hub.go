package hub

import (
	"fmt"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/leader"
)

// New returns the strategy of a new node. The control unit sends it the hosts that it owned in an earlier process.
func New(cfg Config) *central.Strategy {
	cfg = cfg.withDefaults()
	return central.New(cfg.Config, func(l *central.Leader) central.Policy { return newPolicy(cfg, l) }, nil)
}

// A policy is the control unit's state besides the table. None of it is in the log: nodes repeat requests and load
// reports until they have an answer.
type policy struct {
	*central.Leader
	cfg     Config
	checkAt time.Time // time of the next check of outstanding probes

	searches   map[string]*placementSearch
	deciding   []*placementSearch    // searches with a claim, by decideBy
	probeCount map[strategy.Node]int // outstanding probes of each node
	latencies  latencyHints
	balancer   balancer
	offers     map[string]*offer // hosts that may move for load
}

var _ central.Policy = (*policy)(nil)

func newPolicy(cfg Config, l *central.Leader) *policy {
	return &policy{Leader: l, cfg: cfg, searches: map[string]*placementSearch{}, probeCount: map[strategy.Node]int{},
		latencies: newLatencyHints(), balancer: newBalancer(), offers: map[string]*offer{}}
}

// Records returns nil: the policy keeps nothing in the log.
func (p *policy) Records() leader.State { return nil }

// Elected starts a term.
func (p *policy) Elected() {}

// Deposed drops all state except the measured latencies.
func (p *policy) Deposed() {
	p.searches, p.deciding = map[string]*placementSearch{}, nil
	clear(p.probeCount)
	p.balancer, p.offers = newBalancer(), map[string]*offer{}
}

// OwnerRequested starts probes of a host without an owner.
func (p *policy) OwnerRequested(from strategy.Node, host string, _ int) {
	t := p.search(host, "", p.Row(host))
	t.addWaiter(from)
	if len(t.probes)+len(t.claims) == 0 {
		p.probeSeveral(t, from)
	}
	if i := t.probeIndex(from); i >= 0 {
		p.RequestProbe(from, host, t.round) // again, in case the request was lost
	} else {
		p.ReplyWait(from, host, p.cfg.DecisionWait)
	}
}

// HolderFound assigns a host to its holder, which then probes it.
func (p *policy) HolderFound(from strategy.Node, host string) {
	p.Set(host, hosttable.Row{Owner: from, State: central.Parked})
	p.finish(host, from)
	p.ReplyOwnedProbe(from, host, 0)
}

// MoveCompleted updates the balancer when a promised host arrives.
func (p *policy) MoveCompleted(_ string, r hosttable.Row) { p.balancer.moveCompleted(p.Now(), r) }

// LoadReported passes a node's load to the balancer.
func (p *policy) LoadReported(e strategy.Load) { p.balancer.update(p.Now(), e) }

// Advance runs the pending work.
func (p *policy) Advance() {
	p.decideDue()
	p.checkProbes()
	p.balance()
}

// NextDue returns the time of the next pending work; zero: none.
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

// String describes the work in progress.
func (p *policy) String() string {
	return fmt.Sprintf("searches %d, offers %d", len(p.searches), len(p.offers))
}
