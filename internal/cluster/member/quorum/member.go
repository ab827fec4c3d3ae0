package quorum

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

type phase uint8

const (
	starting      phase = iota // the registry has not been read
	acquiring                  // the lease has been requested
	recordingJoin              // the holder records durably that the node will be a member
	joining                    // the node waits to be in the table
	active
	stopped
)

var _ member.Member = (*Member)(nil)

// An env is shared by all parts of a Member: the node's identity, the inputs of the current step, and its output.
type env struct {
	self    strategy.Node
	timing  member.Timing
	now     time.Time
	table   *Table // last table read from the registry; nil: none yet
	actions []member.Action
}

func (e *env) do(a member.Action) { e.actions = append(e.actions, a) }

// later returns a time if it is pending and not reached yet, or zero.
func (e *env) later(at time.Time, pending bool) time.Time {
	if pending && at.After(e.now) {
		return at
	}
	return time.Time{}
}

// A Member is a node's part in a crawl. It guards the node's phase only: it routes each event to the parts that need
// it, in a fixed order, and collects their actions. doc.go lists the parts.
type Member struct {
	cfg      Config
	env      *env
	phase    phase
	reported *Table // last table that NewMembers returned
	wake     time.Time

	lease     ownLease
	peers     peerLeases
	proposals proposals
	ownership ownership
	records   moveRecords
	moves     ownMoves
	batches   batches
	takeovers takeovers
	exports   exports
	arrivals  arrivals
}

// New returns a member that does nothing until Start.
func New(cfg Config) *Member {
	if cfg.Parse == nil {
		cfg.Parse = ParseTable
	}
	env := &env{self: cfg.Self, timing: cfg.Timing}
	jitter := rand.New(rand.NewPCG(cfg.Seed, cfg.Instance)).Float64()
	m := &Member{cfg: cfg, env: env}
	m.lease = ownLease{env: env, instance: cfg.Instance, joined: cfg.Joined}
	m.peers = peerLeases{env: env, jitter: jitter, leases: map[strategy.Node]*peer{}, dead: map[strategy.Node]bool{},
		behind: map[strategy.Node]bool{}}
	m.proposals = proposals{env: env, layout: cfg.Layout, slot: cfg.Slot, jitter: jitter, rank: m.peers.rank,
		dead: m.peers.deadNodes, allDone: m.allDone, movesIdle: m.moves.idle, batches: m.batches.next}
	m.records = moveRecords{env: env, read: map[strategy.Node]record{}}
	m.moves = ownMoves{env: env, records: &m.records}
	m.batches = batches{env: env, waiting: map[strategy.Node]Proposal{}, rank: m.peers.rank, done: m.doneBy}
	m.ownership = ownership{env: env, placer: cfg.Place, moves: m.records.under, places: map[uint64]placement{},
		view: &View{self: cfg.Self}}
	m.takeovers = takeovers{env: env, nodes: map[strategy.Node]*takeover{}}
	m.arrivals = arrivals{env: env, received: slices.Clone(cfg.Received), forgetsPending: m.exports.forgetsPending}
	m.exports = exports{env: env, shift: cfg.shift(), takeovers: &m.takeovers, movesKnown: m.records.known,
		placements: &m.ownership, arrivals: &m.arrivals, forgotten: slices.Clone(cfg.Forgotten)}
	return m
}

// Start appends the first actions.
func (m *Member) Start(out []member.Action) []member.Action {
	return append(out, member.Watch{Keys: []string{TableKey, leaseKey(m.cfg.Self), movesKey(m.cfg.Self)}})
}

// View returns the present view of the owners of hosts.
func (m *Member) View() *View { return m.ownership.view }

// Members returns the members of the table that this node has read.
func (m *Member) Members() strategy.Members {
	t := m.env.table
	if t == nil {
		return strategy.Members{}
	}
	return strategy.Members{Epoch: t.Epoch, Settled: t.Finalized, Members: t.Members}
}

// NewMembers returns the members and moves for a strategy that is no Placer; false if it has returned them before.
func (m *Member) NewMembers() (strategy.Members, bool) {
	t, was := m.env.table, m.reported
	if m.reported = t; t == nil || was != nil && t.Epoch == was.Epoch && t.Finalized == was.Finalized {
		return strategy.Members{}, false
	}
	e := m.Members()
	for _, b := range t.Moves {
		moves := m.records.under(t.Epoch, b.From)
		for _, host := range slices.Sorted(maps.Keys(moves)) {
			e.Moves = append(e.Moves, strategy.Move{Host: host, From: b.From, To: moves[host]})
		}
	}
	return e, true
}

// Exporting reports whether the set of hosts that this node holds is undecided: it is going to transfer hosts and to
// forget them.
func (m *Member) Exporting() bool { return m.phase != active || m.exports.unfinished() }

// Step applies the events since the last call, in order, and appends its actions, in order, to out. It keeps neither
// slice.
func (m *Member) Step(now time.Time, events []member.Event, out []member.Action) []member.Action {
	m.env.now, m.env.actions = now, out
	for _, e := range events {
		if m.phase == stopped {
			break
		}
		m.apply(e)
	}
	if m.phase != stopped {
		m.advance()
	}
	out, m.env.actions = m.env.actions, nil
	return out
}

func (m *Member) apply(e member.Event) {
	switch e := e.(type) {
	case member.Entry:
		m.entry(e)
	case member.Synced:
		m.synced()
	case member.Wrote:
		m.wrote(e)
	case member.JoinRecorded:
		m.phase = joining
		m.assignLeases()
	case member.Message:
		m.message(e)
	case member.Drained:
		m.exports.applyDrained(e.Epoch)
	case member.Chunk:
		m.exports.chunk(e)
	case member.Imported:
		m.arrivals.taken(e.Transfer)
		m.received()
	case member.Dropped:
		m.arrivals.dropped(e.Transfer)
	case member.Forgotten:
		m.exports.forgot(e)
	case member.Recovered:
		m.takeovers.recovered(e)
	case member.Flushed:
		m.exports.flushed(e.Epoch)
	case member.OutboxAdopted:
		m.takeovers.released(e.Node)
		m.exports.released(e.Node)
	case member.Leave:
		m.proposals.leaving = true
	case member.Report:
		m.lease.report = e.Data
	case member.Route:
		m.ownership.setRoute(e.View)
	case member.Acknowledged:
		m.ownership.acknowledge(e.Epoch)
	case member.HandOver:
		m.moves.request(e.Hosts, e.To)
	case member.Tick:
	}
}

func (m *Member) entry(e member.Entry) {
	switch node, isLease := nodeOf(e.Key); {
	case e.Key == TableKey:
		m.tableEntry(e)
	case isLease && node == m.cfg.Self:
		m.ownEntry(e)
	case isLease:
		m.peerEntry(node, e)
	default:
		if name, isMoves := strings.CutPrefix(e.Key, MovesPrefix); isMoves {
			m.movesEntry(strategy.Node(name), e)
		}
	}
}

func (m *Member) wrote(w member.Wrote) {
	switch node, isLease := nodeOf(w.Key); {
	case w.Key == TableKey:
		m.proposals.wrote(w.Err, m.phase == joining)
	case w.Key == movesKey(m.cfg.Self):
		m.moves.wrote(w)
	case isLease && node == m.cfg.Self:
		m.wroteLease(w)
	case isLease:
		m.peers.wrote(node, w)
	}
}

func (m *Member) message(e member.Message) {
	if m.phase != active {
		return
	}
	msg, err := decode(e.Data)
	if err != nil {
		return // from another version, or from no member
	}
	switch msg := msg.(type) {
	case chunkMsg:
		m.arrivals.chunk(e.From, msg)
	case ackMsg:
		m.exports.ack(e.From, msg)
	case queryMsg:
		m.exports.answerQuery(e.From, msg)
	case answerMsg:
		m.exports.applyAnswer(msg)
	}
}

// advance executes everything that is due.
func (m *Member) advance() {
	if m.phase != starting {
		m.lease.renew(m.moves.offer)
	}
	if m.phase == active || m.phase == joining {
		if m.lease.valid() { // a node whose own lease is over neither revokes leases nor changes the table
			m.peers.revokeExpired()
			if err := m.proposals.propose(m.phase); err != nil {
				m.fail("%w", err)
			}
		}
	}
	if m.phase == active {
		m.exports.advance()
		m.complete()
		if m.cfg.Place == nil && m.lease.valid() {
			m.moves.write()
		}
		m.finish()
	}
	if m.phase != stopped {
		m.plan()
	}
}

// plan requests a Tick for the time when the next action is due.
func (m *Member) plan() {
	at := m.lease.due()
	if m.phase == active || m.phase == joining {
		if m.lease.valid() {
			at = earlier(at, m.peers.scanAt)
		}
		at = earlier(at, m.proposals.due())
		at = earlier(at, m.batches.due())
		at = earlier(at, m.moves.due())
	}
	at = earlier(at, m.exports.due())
	if !at.IsZero() && !at.After(m.env.now) {
		at = m.env.now.Add(m.cfg.Timing.Beat / 8) // actions that are due but not done need another event first
	}
	if !at.Equal(m.wake) {
		m.wake = at
		m.env.do(member.Wake{At: at})
	}
}

// end publishes a view without hosts, then appends the member's last action.
func (m *Member) end(last member.Action) {
	m.phase = stopped
	m.ownership.end()
	m.env.do(last)
}

func (m *Member) fail(format string, args ...any) { m.end(failed(format, args...)) }

func failed(format string, args ...any) member.Failed {
	return member.Failed{Err: fmt.Errorf(format, args...)}
}

// participates reports whether the table has this node as a member or as a leaving one.
func (m *Member) participates() bool {
	return m.env.table != nil && m.env.table.participates(m.cfg.Self)
}

// synced starts to acquire the lease: the table and the lease were read from the registry.
func (m *Member) synced() {
	if m.phase != starting {
		return
	}
	if m.cfg.Joined && !m.participates() {
		m.end(member.Lost{Why: "the cluster has removed this node, or is a different one"})
		return
	}
	m.phase = acquiring
	m.peers.reachableSince = m.env.now
	m.lease.next = m.env.now
}

func (m *Member) wroteLease(w member.Wrote) {
	renewed, gap := m.lease.wrote(w)
	if !renewed {
		return
	}
	if m.peers.guard {
		m.batches.offered(m.cfg.Self, &m.lease.written.Proposal)
	}
	if gap {
		m.peers.restartTimeouts()
	}
	m.ownership.extend(m.lease.until)
	switch {
	case m.phase != acquiring:
	case m.participates():
		m.exports.unsure = !m.env.table.isFinalized()
		m.enter()
	default:
		m.phase = recordingJoin
		m.env.do(member.RecordJoin{})
	}
}

// ownEntry applies this node's lease, as the watch has read it.
func (m *Member) ownEntry(e member.Entry) {
	offer, end := m.lease.entry(e)
	if end != nil {
		m.end(end)
	} else if offer != nil { // a batch that an earlier process offered is never withdrawn
		m.moves.offer = *offer
	}
}

// peerEntry applies another node's lease, as the watch has read it.
func (m *Member) peerEntry(n strategy.Node, e member.Entry) {
	p := m.peers.entry(n, e)
	if p == nil {
		return
	}
	// A renewal that a process requested may be seen after its end, but not two.
	if n.Name() == m.cfg.Self.Name() && m.phase <= joining && p.renewals > 1 && !p.lease.Revoked {
		m.fail("a node named %s runs in this cluster already: give this one another name", n.Name())
		return
	}
	if m.peers.guard {
		m.batches.offered(n, &p.lease.Proposal)
	}
	if t := m.env.table; p.lease.Revoked ||
		t != nil && p.lease.Done >= t.Epoch && m.peers.noneBehind() && !t.isFinalized() {
		m.proposals.stagger(m.phase == joining)
	}
}

// movesEntry applies a record of moves, as the watch has read it.
func (m *Member) movesEntry(n strategy.Node, e member.Entry) {
	if n == m.cfg.Self {
		m.moves.entry(e)
	}
	if err := m.records.entry(n, e); err != nil {
		m.fail("the record of moves of %s is in a format that this version of kumo cannot read", n.Name())
	}
}

// tableEntry applies the table, as the watch has read it.
func (m *Member) tableEntry(e member.Entry) {
	if e.Revision <= m.proposals.revision {
		return
	}
	if e.Value == nil {
		m.fail("the member table is missing in the registry")
		return
	}
	t, err := m.cfg.Parse(e.Value)
	if err != nil {
		m.fail("%w", err)
		return
	}
	m.proposals.revision = e.Revision
	m.setTable(t)
}

func (m *Member) setTable(t *Table) {
	old := m.env.table
	m.env.table = t
	if t.Layout != m.cfg.Layout {
		m.fail("this cluster works with %q, and this node with %q: all nodes of a crawl need the same version and settings",
			t.Layout, m.cfg.Layout)
		return
	}
	if m.phase == joining && m.participates() {
		m.enter()
		return
	}
	if m.phase == joining {
		m.assignLeases()
	}
	if old == nil || m.phase != active {
		return
	}
	switch was := old.participates(m.cfg.Self); {
	case was && !m.participates() && old.leaves(m.cfg.Self) && !t.isFailed(m.cfg.Self):
		m.lease.delete()
		m.moves.delete()
		m.end(member.Left{})
		return
	case was && !m.participates():
		m.end(member.Lost{Why: "the other nodes have declared it dead"})
		return
	}
	if t.Finalized != old.Finalized {
		m.epochFinalized() // first: one read may bring the end of an epoch and the start of the next
	}
	if t.Epoch != old.Epoch {
		m.newEpoch()
	}
	m.ownership.publish()
}

// enter starts a member's work: the node has joined, or a new process of the same identity continues.
func (m *Member) enter() {
	m.phase = active
	m.arrivals.start(m.lease.process, m.cfg.Partial)
	m.cfg.Partial = nil
	m.ownership.start()
	m.newEpoch()
	m.ownership.publish()
}

// epochFinalized drops the state that the parts needed only until the end of the epoch.
func (m *Member) epochFinalized() {
	m.arrivals.epochFinalized()
	m.exports.epochFinalized()
	m.ownership.epochFinalized()
	m.records.epochFinalized()
	m.batches.postpone()
	m.env.do(member.Finalized{Epoch: m.env.table.Finalized})
	m.peers.sweep()
}

// newEpoch places hosts under the new table, stops those that now belong to others, and starts to transfer them.
func (m *Member) newEpoch() {
	m.ownership.newEpoch()
	m.moves.newEpoch()
	m.arrivals.abort()
	m.exports.newEpoch(m.lease.revision << 16)
	m.assignLeases()
	m.arrivals.expect(m.cfg.shift())
	m.received()
	m.ownership.publish() // before Drain: it refers to the view published last
	m.exports.drain()
}

// received completes the epoch's arrivals once every expected transfer is complete.
func (m *Member) received() {
	if m.arrivals.complete() {
		m.ownership.complete()
	}
}

// assignLeases watches the leases that this node has to watch under the table, and the records of moves it has to read.
func (m *Member) assignLeases() {
	if m.env.table == nil {
		return
	}
	keys := append([]string{TableKey}, m.peers.assign(m.phase == joining)...)
	keys = append(keys, movesKey(m.cfg.Self))
	m.env.do(member.Watch{Keys: append(keys, m.takeovers.records()...)})
	m.batches.clear()
	if m.peers.guard {
		m.batches.offered(m.cfg.Self, &m.lease.written.Proposal)
		m.peers.each(m.batches.offered)
	}
}

// complete reports in the lease that this node has finished the epoch.
func (m *Member) complete() {
	t := m.env.table
	if m.lease.done == t.Epoch || !m.ownership.known() || !m.exports.finished() {
		return
	}
	m.lease.done = t.Epoch
	m.lease.renew(m.moves.offer)
	if m.peers.noneBehind() && !t.isFinalized() {
		m.proposals.stagger(false)
	}
}

// finish leaves a cluster without other members: the node stays in the table, and its state on its disk.
func (m *Member) finish() {
	t := m.env.table
	if m.proposals.leaving && len(t.Members) == 1 && t.has(m.cfg.Self) && t.isFinalized() && len(m.exports.nodes) == 0 {
		m.end(member.Left{})
	}
}

// allDone reports whether all participants have finished the epoch, according to a guard.
func (m *Member) allDone() bool {
	return m.phase == active && m.lease.done >= m.env.table.Epoch && m.peers.noneBehind()
}

// doneBy returns the last epoch that a member has finished, according to a guard.
func (m *Member) doneBy(n strategy.Node) uint64 {
	if n == m.cfg.Self {
		return m.lease.written.Done
	}
	return m.peers.doneBy(n)
}

// earlier returns the earlier of two times. Zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
