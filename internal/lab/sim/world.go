package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// A world is one run: a cluster and the web that it crawls.
type world struct {
	cfg Config
	runLog
	runSeed   uint64
	web       *web
	net       *network
	reg       *registry
	logs      map[strategy.Node]*shippedLog
	log       strategyLog
	moves     moveWatcher
	machines  []*machine
	machineOf map[strategy.Node]int // machine of each identity
	instances uint64
	checker   *requestChecker
	faults    faults
	figures   Figures
	messages  WorkMessages

	handedOver map[strategy.Node]map[int32]uint64 // pages that a node has read for a handover, by host

	memo memo

	seeded   int  // seeds that a node has durably
	finished bool // the crawl's record is marked as done
}

func newWorld(cfg Config, seed uint64, focus int32, telling bool) *world {
	w := &world{cfg: cfg, runSeed: seed, runLog: runLog{k: newKernel(seed), focus: focus, storyEnabled: telling},
		web: newWeb(cfg, hash(seed, 1)), logs: map[strategy.Node]*shippedLog{},
		handedOver: map[strategy.Node]map[int32]uint64{}, machineOf: map[strategy.Node]int{},
		memo: memo{tables: map[*byte]*quorum.Table{}}}
	w.net = &network{k: w.k, bandwidth: cfg.Bandwidth, loss: cfg.Loss, dup: cfg.Loss, slowdown: 1}
	w.net.latency = planeLatency{seed: seed, least: cfg.Latency / 10, width: cfg.Latency}
	if cfg.Matrix != nil {
		w.net.latency = cfg.Matrix
	}
	w.reg = &registry{w: w, values: map[string]member.Entry{}, watchers: map[string][]*watcher{}}
	w.checker = newRequestChecker(w)
	w.moves = moveWatcher{w: w, last: map[string]lastMove{}, memberSince: map[strategy.Node]moment{}}
	for i := range cfg.Nodes {
		w.addMachine(i)
	}
	return w
}

// addMachine adds a machine whose clock is off by up to an hour and fast or slow by up to 1/2000.
func (w *world) addMachine(i int) *machine {
	m := &machine{index: i, shouldRun: true, cutSince: forever, offset: w.k.uniform(-time.Hour, time.Hour),
		drift: (w.k.rng.Float64() - 0.5) / 1000, slowness: 1, throttled: 1}
	switch {
	case i < len(w.cfg.Slowness):
		m.slowness = w.cfg.Slowness[i]
	case w.cfg.VarySpeeds:
		m.slowness = 1 + float64(hash(w.runSeed, 9, uint64(i))%1000)/250
	}
	w.machines = append(w.machines, m)
	return m
}

// processes returns the running processes, including paused ones.
func (w *world) processes() []*process {
	var all []*process
	for _, m := range w.machines {
		if m.proc != nil {
			all = append(all, m.proc)
		}
	}
	return all
}

// run runs the crawl with faults, then ends them and continues until the crawl is at rest or its time is over.
func (w *world) run() {
	w.start()
	w.k.run(w.cfg.FaultTime, w.failed)
	w.faults.end()
	w.logEvent("the faults end")
	idle := forever
	for !w.failed() && !w.atRest(&idle) {
		w.k.run(w.k.now+time.Second, w.failed)
	}
	w.stop()
	w.checker.checkRepeats()
	w.figures.Virtual = w.k.now
	w.figures.Requests, w.figures.Duplicates = w.checker.count, w.checker.duplicates
	w.figures.Slips, w.figures.Stall, w.figures.Events = w.checker.slips, w.checker.longestStall, w.k.eventCount
}

func (w *world) stop() {
	for _, p := range w.processes() {
		p.close()
	}
}

// start starts all nodes, schedules the faults, and adds the seeds.
func (w *world) start() {
	w.faults = faults{w: w}
	if w.cfg.Formed {
		w.form()
	}
	for _, m := range w.machines {
		w.k.after(w.k.uniform(0, w.cfg.Spread), func() { w.begin(m) })
	}
	for i := range w.web.seeds {
		w.addSeed(at(int32(i), 0))
	}
	if w.cfg.SlowsAt > 0 {
		w.k.after(w.cfg.SlowsAt, func() { w.machines[0].throttled = w.cfg.SlowsBy })
	}
	w.faults.begin()
}

// failed reports whether a violation makes the rest of the run pointless.
func (w *world) failed() bool { return len(w.violations) > 0 }

// maxIdle is how long a crawl may have no work and still break an invariant of the rest.
const maxIdle = 12 * time.Minute

// atRest reports whether the crawl is over: it has had no work for a while, or its time is up. It then checks the
// invariants.
func (w *world) atRest(idle *moment) bool {
	now := w.k.now
	switch {
	case now > w.cfg.FaultTime+w.cfg.RestLimit:
		for _, p := range w.processes() {
			if s, ok := p.strategy.(fmt.Stringer); ok && w.storyEnabled {
				w.logEvent("%v", s)
			}
		}
		w.violate("not at rest %v after the last fault: %s", w.cfg.RestLimit, w.pendingWork())
		w.judge(true)
		return true
	case w.pendingWork() != "":
		*idle = forever
		return false
	case *idle == forever:
		*idle = now
	}
	if now < *idle+30*time.Second {
		return false
	}
	if now < *idle+maxIdle && w.judge(false) > 0 {
		return false
	}
	w.judge(true)
	return true
}

// placer returns the strategy's placement, cached for all nodes; nil if placement does not follow from the member list
// alone.
func (w *world) placer(p *process) strategy.Placer {
	s := w.cfg.Strategy(p.node)
	placer, ok := s.(strategy.Placer)
	if !ok {
		p.strategy = w.cfg.parts.strategy(p, s)
		return nil
	}
	return w.cfg.parts.placer(p, &sharedPlacer{placer, &w.memo})
}

// A memo caches results that are the same for all nodes of a run.
type memo struct {
	tables map[*byte]*quorum.Table // parsed tables, by the address of their bytes
	placed []placement
}

// A placement is an immutable member list and its view.
type placement struct {
	members []strategy.Member
	view    strategy.View
}

// A sharedPlacer places each member list once for all nodes.
type sharedPlacer struct {
	strategy.Placer
	*memo
}

func (s *sharedPlacer) Place(members []strategy.Member) strategy.View {
	for _, p := range slices.Backward(s.placed) {
		if same(p.members, members) {
			return p.view
		}
	}
	if len(s.placed) >= 16 {
		s.placed = slices.Delete(s.placed, 0, 1)
	}
	p := placement{members, &sharedView{s.Placer.Place(members), map[string]answer{}}}
	s.placed = append(s.placed, p)
	return p.view
}

func same(a, b []strategy.Member) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// A sharedView caches the owners of hosts.
type sharedView struct {
	strategy.View
	answers map[string]answer
}

type answer struct {
	owner strategy.Node
	state strategy.State
}

// Owner returns the owner of a host, as the strategy's view does.
func (v *sharedView) Owner(host string) (strategy.Node, strategy.State) {
	a, known := v.answers[host]
	if !known {
		a.owner, a.state = v.View.Owner(host)
		v.answers[host] = a
	}
	return a.owner, a.state
}

// parse parses each table once for all nodes.
func (w *memo) parse(value []byte) (*quorum.Table, error) {
	if t := w.tables[&value[0]]; t != nil {
		return t, nil
	}
	t, err := quorum.ParseTable(bytes.Clone(value))
	if err == nil {
		if len(w.tables) > 64 {
			clear(w.tables)
		}
		w.tables[&value[0]] = t
	}
	return t, err
}

func (w *world) onWrite(old, e member.Entry) {
	if strings.HasPrefix(e.Key, quorum.LeasePrefix) {
		w.onLeaseWrite(old, e)
	}
	if e.Key != quorum.TableKey {
		return
	}
	t, err := quorum.ParseTable(e.Value)
	if err != nil {
		w.violate("parse the member table: %v", err)
		return
	}
	w.figures.Epochs = max(w.figures.Epochs, int(t.Epoch))
	w.moves.updateMembers(t.Members)
	if w.storyEnabled {
		w.logEvent("table: %s", describeTable(t))
	}
}

func (w *world) onLeaseWrite(old, e member.Entry) {
	if e.Value == nil {
		return
	}
	l, err := quorum.ParseLease(e.Value)
	if err != nil {
		w.violate("parse a lease: %v", err)
		return
	}
	if l.Revoked {
		w.figures.Revoked++
		w.logEvent("the lease of %s is revoked", strings.TrimPrefix(e.Key, quorum.LeasePrefix))
	}
}

func describeTable(t *quorum.Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %d, finalized %d, %d members", t.Epoch, t.Finalized, len(t.Members))
	for _, c := range t.Changes {
		sign := "-"
		if c.Came {
			sign = "+"
		}
		fmt.Fprintf(&b, " %d:%s%s", c.Epoch, sign, c.Member.Node)
	}
	if len(t.Leaving) > 0 {
		fmt.Fprintf(&b, ", leaving %v", t.Leaving)
	}
	for _, m := range t.Moves {
		fmt.Fprintf(&b, ", hosts of %s to %v", m.From, m.To)
	}
	if len(t.Failed) > 0 {
		fmt.Fprintf(&b, ", failed %v", t.Failed)
	}
	return b.String()
}
