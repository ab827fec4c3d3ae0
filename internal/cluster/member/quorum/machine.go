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
	starting  phase = iota // the registry has not been read
	acquiring              // the lease is asked for
	entering               // the holder notes that there will be a member
	joining                // the table is to have the node
	in
	over
)

var _ member.Member = (*Member)(nil)

// A Member is a node's part in a crawl.
type Member struct {
	cfg    Config
	jitter float64 // this node's share of what is spread over time
	now    time.Time
	out    []member.Action
	phase  phase

	lease  own
	peers  map[strategy.Node]*peer // whose leases are watched
	guard  bool                    // the leases of all are
	scanAt time.Time               // when the next of them may be over
	sound  time.Time               // since when the registry has answered in time
	dead   map[strategy.Node]bool  // of the table, their leases revoked
	behind map[strategy.Node]bool  // members and leaving ones that are not done with the epoch, as a guard knows them

	table     *Table
	tableRev  uint64
	tableBusy bool
	proposeAt time.Time // not before, so that not all propose at once
	late      int       // proposals that came after those of others
	leaving   bool      // asked to leave

	view    *View
	route   strategy.View // whose hosts are, where that does not follow from the members alone
	moving  moving
	records map[strategy.Node]record   // of moves, as read
	offers  map[strategy.Node]Proposal // batches that wait, as a guard knows them
	movesAt time.Time                  // until then a guard lets them
	told    *Table                     // of which the strategy was told
	places  map[uint64]placement       // by epoch, from the last settled one
	has     uint64                     // the last epoch of which all that is this node's own has come
	booked  uint64                     // and the strategy has been told and knows of it
	done    uint64                     // and nothing of others' is left
	unsure  bool                       // what an earlier process has transferred under epochs not settled is not known
	arrived []member.Transfer          // whole, since the last settled epoch
	forgot  []member.Transfer          // of this node's, done with since then
	owed    map[strategy.Node]bool     // from these something may yet come under the epoch
	coming  map[strategy.Node]*arrival
	early   int                       // bytes of theirs that came too early
	olds    []*arrival                // of earlier epochs, not yet whole or dropped
	exports map[strategy.Node]*export // by who held it
	ghosts  map[strategy.Node]*takeover
	drained bool // no request is under way to a host that is another's under the epoch
	wake    time.Time
}

// New returns a member that has not begun: Start makes it.
func New(cfg Config) *Member {
	m := &Member{cfg: cfg, records: map[strategy.Node]record{}, offers: map[strategy.Node]Proposal{},
		jitter: rand.New(rand.NewPCG(cfg.Seed, cfg.Instance)).Float64(), peers: map[strategy.Node]*peer{},
		view:   &View{self: cfg.Self},
		places: map[uint64]placement{}, coming: map[strategy.Node]*arrival{}, exports: map[strategy.Node]*export{},
		ghosts: map[strategy.Node]*takeover{},
		behind: map[strategy.Node]bool{}, dead: map[strategy.Node]bool{}, arrived: slices.Clone(cfg.Arrived),
		forgot: slices.Clone(cfg.Forgot)}
	if m.cfg.Parse == nil {
		m.cfg.Parse = ParseTable
	}
	return m
}

// Start appends what is to be done first.
func (m *Member) Start(out []member.Action) []member.Action {
	return append(out, member.Watch{Keys: []string{TableKey, leaseKey(m.cfg.Self), movesKey(m.cfg.Self)}})
}

// View is whose hosts are, as this node knows it now.
func (m *Member) View() *View { return m.view }

// Members are those of the table as this node knows it.
func (m *Member) Members() strategy.Members {
	if m.table == nil {
		return strategy.Members{}
	}
	return strategy.Members{Epoch: m.table.Epoch, Settled: m.table.Settled, Members: m.table.Members}
}

// News is what a strategy that is no Placer is to be told of the table; false if it has been, by an earlier call.
func (m *Member) News() (strategy.Members, bool) {
	t, was := m.table, m.told
	if m.told = t; t == nil || was != nil && t.Epoch == was.Epoch && t.Settled == was.Settled {
		return strategy.Members{}, false
	}
	e := m.Members()
	for _, b := range t.Moves {
		moves := m.movesUnder(t.Epoch, b.From)
		for _, host := range slices.Sorted(maps.Keys(moves)) {
			e.Moves = append(e.Moves, strategy.Move{Host: host, From: b.From, To: moves[host]})
		}
	}
	return e, true
}

// Step takes the events since the last call, in order, and appends the actions it wants done, in order, to out. It
// keeps neither slice.
func (m *Member) Step(now time.Time, events []member.Event, out []member.Action) []member.Action {
	m.now, m.out = now, out
	for _, e := range events {
		if m.phase == over {
			break
		}
		m.take(e)
	}
	if m.phase != over {
		m.advance()
	}
	out, m.out = m.out, nil
	return out
}

func (m *Member) do(a member.Action) { m.out = append(m.out, a) }

func (m *Member) take(e member.Event) {
	switch e := e.(type) {
	case member.Entry:
		m.entry(e)
	case member.Synced:
		m.synced()
	case member.Wrote:
		m.wrote(e)
	case member.Entered:
		m.phase = joining
		m.guardUp()
	case member.Message:
		m.message(e)
	case member.Drained:
		m.drained = m.drained || m.table != nil && e.Epoch == m.table.Epoch
	case member.Chunk:
		m.chunk(e)
	case member.Taken:
		m.taken(e)
	case member.Dropped:
		m.dropped(e)
	case member.Forgotten:
		m.forgotten(e)
	case member.Folded:
		m.folded(e)
	case member.Flushed:
		m.flushed(e)
	case member.Released:
		m.released(e)
	case member.Leave:
		m.leaving = true
	case member.Report:
		m.lease.report = e.Data
	case member.Route:
		m.route = e.View
		m.publish()
	case member.Acknowledged:
		m.booked = max(m.booked, e.Epoch)
	case member.HandOver:
		m.handOver(e)
	case member.Tick:
	}
}

// advance does what is due, whatever has happened.
func (m *Member) advance() {
	m.renew()
	if m.phase == in || m.phase == joining {
		m.watchOthers()
		m.propose()
	}
	if m.phase == in {
		m.driveAll()
		m.offer()
		m.finish()
	}
	if m.phase != over {
		m.plan()
	}
}

// end is the member's last word.
func (m *Member) end(a member.Action) {
	m.phase = over
	m.view = &View{self: m.cfg.Self, epoch: m.view.epoch}
	m.do(member.Publish{View: m.view})
	m.do(a)
}

func (m *Member) fail(format string, args ...any) {
	m.end(member.Failed{Err: fmt.Errorf(format, args...)})
}

func (m *Member) lost(why string) { m.end(member.Lost{Why: why}) }

// part reports whether the table has this node as a member or as one that leaves.
func (m *Member) part() bool {
	return m.table != nil && m.table.part(m.cfg.Self)
}

// synced begins: all that the registry has of the table and the own lease is known.
func (m *Member) synced() {
	if m.phase != starting {
		return
	}
	if m.cfg.Joined && !m.part() {
		m.lost("the cluster has given this node up, or is another one")
		return
	}
	m.phase = acquiring
	m.sound = m.now
	m.lease.next = m.now
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
		if node, moves := strings.CutPrefix(e.Key, MovesPrefix); moves {
			m.movesEntry(strategy.Node(node), e)
		}
	}
}

func (m *Member) wrote(w member.Wrote) {
	switch node, isLease := nodeOf(w.Key); {
	case w.Key == TableKey:
		m.wroteTable(w)
	case w.Key == movesKey(m.cfg.Self):
		m.wroteMoves(w)
	case isLease && node == m.cfg.Self:
		m.wroteOwn(w)
	case isLease:
		if p := m.peers[node]; p != nil {
			p.revoking = false
			if w.Err == nil {
				p.rev, p.lease.Revoked = w.Revision, true
				m.markDead(node)
			}
		}
	}
}

// plan asks to be woken when something is due.
func (m *Member) plan() {
	at := m.lease.next
	if m.lease.busy {
		at = m.now.Add(m.cfg.Timing.Beat)
	}
	if m.phase == in || m.phase == joining {
		if m.lease.until.After(m.now) {
			at = earlier(at, m.scanAt) // a node whose own lease is over judges nobody
		}
		if !m.tableBusy && m.proposeAt.After(m.now) {
			at = earlier(at, m.proposeAt)
		}
		if len(m.offers) > 0 && m.movesAt.After(m.now) {
			at = earlier(at, m.movesAt)
		}
		if len(m.moving.wants) > 0 && m.offersAt().After(m.now) {
			at = earlier(at, m.offersAt())
		}
	}
	for _, e := range m.exports {
		at = earlier(at, e.due())
	}
	if !at.IsZero() && !at.After(m.now) {
		at = m.now.Add(m.cfg.Timing.Beat / 8) // what is due and was not done waits for something else
	}
	if !at.Equal(m.wake) {
		m.wake = at
		m.do(member.Wake{At: at})
	}
}

// Exporting reports whether it is not settled what this node holds: it is about to hand over, and to forget.
func (m *Member) Exporting() bool {
	e := m.exports[m.cfg.Self]
	return m.phase != in || e != nil && e.stage != finished
}

// earlier is the earlier of two times, of which the zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
