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
	cfg    Config
	lookAt time.Time // for searches that have waited too long

	searches map[string]*placementSearch
	deciding []*placementSearch    // that have a claim, in the order of their time
	asking   map[strategy.Node]int // hosts that a node is being asked for
	near     latencyHints
	level    level
	offers   map[string]*offer // hosts that may move for load
}

var _ central.Policy = (*policy)(nil)

func newPolicy(cfg Config, l *central.Leader) *policy {
	return &policy{Leader: l, cfg: cfg, searches: map[string]*placementSearch{}, asking: map[strategy.Node]int{},
		near: newLatencyHints(), level: newLevel(), offers: map[string]*offer{}}
}

// Records are none.
func (p *policy) Records() leader.State { return nil }

// Elected begins a term.
func (p *policy) Elected() {}

// Deposed forgets what is under way.
func (p *policy) Deposed() {
	p.searches, p.deciding = map[string]*placementSearch{}, nil
	clear(p.asking)
	p.level, p.offers = newLevel(), map[string]*offer{}
}

// Wanted has a host probed that is nobody's.
func (p *policy) Wanted(from strategy.Node, host string, _ int) {
	t := p.search(host, "", p.Row(host))
	t.want(from)
	if len(t.asked)+len(t.claims) == 0 {
		p.askFirst(t, from)
	}
	if i := t.question(from); i >= 0 {
		p.Probe(from, host, t.round) // once more, if it was lost
	} else {
		p.Wait(from, host, p.cfg.Wait)
	}
}

// Found gives a host to who holds it, which sees whether it reaches it.
func (p *policy) Found(from strategy.Node, host string) {
	p.Set(host, hosttable.Row{Owner: from, State: central.Parked})
	p.conclude(host, from)
	p.Prove(from, host, 0)
}

// Came, Load, Advance and Due keep the nodes' loads level, and go on with searches.
func (p *policy) Came(_ string, r hosttable.Row) { p.level.came(p.Now(), r) }

// Load takes in what a node tells.
func (p *policy) Load(e strategy.Load) { p.level.hear(p.Now(), e) }

// Advance does what is due.
func (p *policy) Advance() {
	p.decide()
	p.judge()
	p.even()
}

// Due is when something is; zero: nothing is.
func (p *policy) Due() (at time.Time) {
	if p.level.at.After(p.Now()) {
		at = p.level.at
	}
	if len(p.searches) > 0 {
		at = central.Earliest(at, p.lookAt)
	}
	if len(p.deciding) > 0 {
		at = central.Earliest(at, p.deciding[0].until)
	}
	return at
}

// String says how much is under way.
func (p *policy) String() string {
	return fmt.Sprintf("searches %d, offers %d", len(p.searches), len(p.offers))
}
