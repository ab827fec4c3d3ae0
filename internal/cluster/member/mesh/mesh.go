// Package mesh implements membership without a center: no registry, no leader, no table of members.
//
// It follows the crawler of Huang, Zeng and Chen on Kademlia, and closes the gaps of the paper.
//
// # Roles for a host
//
// Every node and every host is a point in the space of [kumo/internal/base/xor]. A host has two points. The live node
// closest to the first is the host's target, and fetches it. The Config.Backups live nodes closest to the second are
// its backups, and store which of its URLs are known. So the record of a URL and the node that fetches it are separate,
// and one of the two survives.
//
// A URL passes through these steps:
//
//   - The node that finds links offers them to the first backup, in batches by host, and stores them until they are
//     claimed.
//   - The first backup enters the new URLs into its history as dispatched, and has the other backups do the same. They
//     answer which URLs they knew. So a backup that has just become the first, and knows little yet, does not treat a
//     URL as new that another backup knows.
//   - The first backup then has the target fetch the new URLs. The finder drops its links when all backups have them on
//     disk.
//   - The target reports the URLs that it has fetched to the first backup. That backup marks them as done, and has the
//     others mark them.
//
// A URL that is dispatched and not done is dispatched again when its target is gone, or reports that it no longer has
// the URL. All steps are idempotent, since a target knows from its own URL database which URLs it has met.
//
// A host gets a new target when a closer node joins. The old target stops, reports what it has fetched, names the new
// target, and forgets the host. Nothing else moves: the first backup has the pending URLs and dispatches them again.
//
// So no URL is lost under one condition. One of a host's backups must keep its disk until the others have noticed
// failed backups and have copied their data to replacements. This takes some seconds and the time of the copies. If
// fewer than Config.Backups nodes are left, there are no replacements. Nodes that stay away for Config.Absent then
// count as lost (see absence).
//
// To know that it is the closest, a node needs no table of all nodes. A node in the bucket of a bit differs from this
// node first in that bit. So it is closer to all ids that differ from this node in that bit, and farther from all
// others. Therefore a node is the closest to an id if and only if the two differ in no bit whose bucket is occupied.
//
// # Differences from the paper
//
//   - The paper queries and records with two messages. Here a claim is one message, and atomic.
//   - The paper records a URL when the target receives it, and loses it when the target dies. Here a URL is dispatched
//     until it is done.
//   - The paper's key is the URL. Here it is the host, for politeness.
package mesh

import (
	"cmp"
	"container/heap"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// DefaultInterval is a Config's Interval.
const DefaultInterval = 30 * time.Second

// Config is what a Machine is made of.
type Config struct {
	Self    strategy.Node
	Overlay Overlay
	Backups int // of a host; 3
	// between two questions to a target whether it has what was dispatched to it; 10s, 1m while it has
	Check    time.Duration
	Absent   time.Duration // how long nodes that do not answer are waited for where fewer than Backups are left; 20s
	Alone    time.Duration // after which a node that has lost all others takes what was theirs; DefaultAlone
	Finds    int           // look-ups at once, at most; 32
	Routes   int           // hosts near to other nodes whose first backup is remembered, at most; 65536
	Block    int           // URLs of a block of load; 20
	Area     int           // blocks that this node works on; 0: as many as the rates of its Loads make
	Interval time.Duration // between two Loads; DefaultInterval
	// a node gives load only to buckets that have room for all that it has too much, as the paper has it
	AllOrNothing bool
	// reports whether something of a host waits in the engine, or is under way there
	Waits func(host string) bool
	Width int // bits of ids that count: fewer than xor.Bits for tests only
	// reports whether nothing waits in the engine, is under way there, or is bound for others, and how often something was
	// brought to it; nil: it is always so
	Engine  func() (idle bool, came uint64)
	Figures func() (sums []int64, greatest []uint64) // what status adds up over all nodes; may be nil
	// how many pages this node has fetched, a number that never falls; the sums have it when the node has gone. nil: none
	// are counted
	Pages   func() int64
	Counts  map[strategy.Node]int64       // Machine.Counts of an earlier process
	Report  func() []byte                 // what this node says of itself alone, 1 KiB or less; may be nil
	Process uint64                        // another for each process: what it counts begins anew with it
	Met     bool                          // an earlier process knew other nodes
	Record  RecordVersion                 // of the crawl, as it was known last
	Chunks  []ChunkID                     // that are known from earlier processes
	Chunk   func(ChunkID) ([]byte, error) // reads one that is known
	// lists of pages at risk that earlier processes have left, by node and record file, with their lengths: this node's
	// and those of others; see atrisk.go
	Risks     map[strategy.Node]map[string]int64
	LostAfter time.Duration // after which a node that is missed counts as lost with its disk; DefaultLostAfter
	Log       *slog.Logger
}

// A Machine is a node's part in a mesh. It is a pure state machine: told what happened, it answers with what to do. Its
// methods are called by one goroutine at a time.
type Machine struct {
	cfg    Config
	id     xor.ID
	log    *slog.Logger
	now    time.Time
	fresh  time.Time // until when the overlay's knowledge holds
	theEnd xor.ID    // to which the node is closest that finds the crawl's end
	// the bits whose buckets have somebody
	occupied xor.ID
	leaving  bool
	out      []Action
	last     uint64 // number given to anything: others than an earlier process has given, whose answers may come yet

	timers timers
	armed  time.Time // when a Tick is asked for

	lanes   map[strategy.Node]*lane
	ready   []*lane             // with something to be sent, perhaps
	inbound map[inboundKey]bool // whether one brings work
	// how many of these are of one node, and when each of the last flights arrived first
	inboundOf  map[strategy.Node]int
	arrivals   *bounded.Recent[inboundKey, time.Time]
	complaints *bounded.Seldom[strategy.Node]
	// what keeps this node from being idle: items that bring work and are on their way, such messages of others that are
	// being done, and URLs that are being recorded and not done
	posted, working, entering int

	recording map[uint64]func(Recorded) // what waits for the history
	reading   map[uint64]func(Known)
	taking    map[uint64]func(Taken)
	finds     finds

	offers  map[offerKey]bool        // batches that are being claimed
	hosts   map[string]*outstanding  // with URLs that are dispatched and not done, as far as the history knows
	checks  map[strategy.Node]*check // targets of those
	held    map[string]*holding      // hosts that this node fetches
	timings *bounded.Recent[string, timed]
	unheard recent // nodes that have not answered who asked them to stop
	leavers recent // nodes that have said farewell, and may not have given up yet what they have
	routes  routes
	copies  copies
	recalls map[string]bool // hosts whose queues are to be recalled
	absent  absence
	apart   apartness
	alone   solitude
	balance balance

	gatherings map[gatherKey]*gathering
	counts     counts
	risks      risks
	crawl      RecordVersion
	chunks     chunks
	said       int    // how far sayChunks is
	synced     int    // how far sync is
	agreed     bool   // with another node: see Agreed
	came       uint64 // how often something was brought to this node
	ending     bool   // whether all rest is being found out
	seeking    bool   // lookForEnd will be called
	quiet      quiet
	view       *View
}

// quiet is what review goes by.
type quiet struct {
	came     uint64 // to engine and machine, when it was called last
	reviewed time.Time
}

// New makes a machine. The overlay has this node in it, and is told and asked by who calls Step.
func New(cfg Config) *Machine {
	cfg.Backups, cfg.Check = cmp.Or(cfg.Backups, 3), cmp.Or(cfg.Check, 10*time.Second)
	cfg.Absent, cfg.Alone = cmp.Or(cfg.Absent, 20*time.Second), cmp.Or(cfg.Alone, DefaultAlone)
	cfg.Finds, cfg.Routes = cmp.Or(cfg.Finds, 32), cmp.Or(cfg.Routes, 1<<16)
	cfg.Block, cfg.Interval = cmp.Or(cfg.Block, 20), cmp.Or(cfg.Interval, DefaultInterval)
	cfg.Width = cmp.Or(cfg.Width, xor.Bits)
	cfg.LostAfter = cmp.Or(cfg.LostAfter, DefaultLostAfter)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	m := &Machine{cfg: cfg, log: cfg.Log, lanes: map[strategy.Node]*lane{}, inbound: map[inboundKey]bool{},
		recording: map[uint64]func(Recorded){}, reading: map[uint64]func(Known){}, taking: map[uint64]func(Taken){},
		offers: map[offerKey]bool{}, hosts: map[string]*outstanding{}, checks: map[strategy.Node]*check{},
		held: map[string]*holding{}, recalls: map[string]bool{}, gatherings: map[gatherKey]*gathering{},
		balance: balance{quiet: map[string]int{}, away: map[string]strategy.Node{}}}
	m.last = mix(cfg.Process) >> 24
	m.apart.few = true // an earlier process may have been alone
	m.crawl, m.copies.under = cfg.Record, map[string]*given{}
	for _, id := range cfg.Chunks {
		m.chunks.add(id)
	}
	m.id, m.theEnd = m.idOf("node", string(cfg.Self)), m.idOf("end", "")
	m.absent.died = recent{lasts: 2 * time.Minute, most: 16}
	m.leavers, m.unheard = recent{lasts: time.Minute, most: 64}, recent{lasts: time.Minute, most: 64}
	m.finds.init()
	m.risks = newRisks(&m.cfg)
	m.initCounts()
	m.timings = bounded.NewRecent[string, timed](maxTimings)
	m.inboundOf = map[strategy.Node]int{}
	m.complaints = bounded.NewSeldom[strategy.Node](complainEvery, maxComplained)
	m.arrivals = bounded.NewRecent[inboundKey, time.Time](maxArrived)
	m.routes = routes{bounded.NewRecent[string, route](cfg.Routes), map[string]bool{}}
	m.publish()
	m.out = nil // who needs the view asks for it
	return m
}

func (m *Machine) idOf(kind, name string) xor.ID { return xor.Of(kind, name).Truncate(m.cfg.Width) }

// target is the id to which a host's target is closest.
func (m *Machine) target(host string) xor.ID { return m.idOf("target", host) }

// backup is the id to which a host's backups are closest.
func (m *Machine) backup(host string) xor.ID { return m.idOf("backup", host) }

// closest reports whether no live node is closer to an id than this one.
func (m *Machine) closest(id xor.ID) bool {
	if m.leaving || !m.now.Before(m.fresh) {
		return false
	}
	return m.id.Distance(id).And(m.occupied) == xor.ID{}
}

// Start appends what is to be done first.
func (m *Machine) Start(now time.Time, out []Action) []Action {
	m.now, m.out = now, out
	if m.cfg.Met {
		m.absent.met = now.Add(m.cfg.Absent)
	}
	m.after(agreeEvery, m.sync)
	m.after(reviewQuiet, m.review)
	if m.cfg.Pages != nil {
		m.after(countEvery, m.keepCounts)
	}
	m.watchRisks()
	return m.end()
}

// Balance is what this node has to do, as far as Load has told it.
func (m *Machine) Balance() Balance { return m.balance.Balance }

// View is the view that was published last.
func (m *Machine) View() *View { return m.view }

// Closest reports whether this node is the closest to an id, as of the last Step.
func (m *Machine) Closest(id xor.ID) bool { return m.closest(id) }

// Placed reports whether this node knows its place, as of the last Step: before that, and while what it knows is stale,
// nothing is its own.
func (m *Machine) Placed() bool { return m.closest(m.id) }

// FindsEnd reports whether it is this node that finds the crawl's end.
func (m *Machine) FindsEnd() bool { return m.closest(m.theEnd) }

// near are the live nodes closest to an id, this one not among them when it leaves.
func (m *Machine) near(id xor.ID, n int) ([]strategy.Node, bool) {
	if !m.leaving {
		return m.cfg.Overlay.Closest(id, n)
	}
	nodes, exact := m.cfg.Overlay.Closest(id, n+1)
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(o strategy.Node) bool { return o == m.cfg.Self })
	return nodes[:min(len(nodes), n)], exact && len(nodes) > 0
}

// replaced is for how long what a node knows may have been stale before it takes it that others have its hosts.
const replaced = 1 * time.Second

// leave gives all to others: what is fetched here, and all of the history.
func (m *Machine) leave() {
	if m.leaving {
		return
	}
	m.leaving = true
	v := *m.view
	v.until, v.in = time.Time{}, nil // who has given it hosts finds that it has them no more
	m.show(&v)
	m.stopAll()
	m.lookAtHosts()
	m.sweepSoon()
	m.copies.found = -1
	m.after(sweepAfter, m.lookLeft)
}

// lookLeft looks again and again whether all was given to others.
func (m *Machine) lookLeft() {
	c := &m.copies
	if len(m.held) == 0 && m.Idle() && !m.sends() && !c.running && !c.armed && c.giving == 0 && m.wardsShared() {
		if c.found == 0 && !m.tellCounts() {
			m.do(Left{})
			return
		}
		m.sweepSoon() // something may have come since
	}
	m.after(pause, m.lookLeft)
}

// Step takes the events since the last call, in order, and appends the actions it wants done, in order, to out. What an
// event says is the machine's from then on.
func (m *Machine) Step(now time.Time, events []Event, out []Action) []Action {
	m.now, m.out = now, out
	for _, e := range events {
		m.take(e)
	}
	m.timers.fire(now)
	return m.end()
}

// The log is told at most once in complainEvery that messages of a node cannot be read: a node can send thousands a
// second. Of so many nodes it is known when that was.
const (
	complainEvery = time.Minute
	maxComplained = 1 << 8
)

// end ends a step.
func (m *Machine) end() (out []Action) {
	for m.deliver() {
	}
	if at, ok := m.timers.next(); ok && !at.Equal(m.armed) {
		m.armed = at
		m.do(Wake{At: at})
	}
	out, m.out = m.out, nil
	return out
}

func (m *Machine) do(a Action) { m.out = append(m.out, a) }

func (m *Machine) take(e Event) {
	switch e := e.(type) {
	case Message:
		if err := m.message(e.From, e.Data); err != nil {
			if m.complaints.Due(e.From, m.now) {
				m.log.Warn("a message that cannot be read", "from", e.From, "err", err)
			}
		}
	case Neighbours:
		m.neighbours()
	case Fresh:
		m.refresh(e.Until)
	case Gone:
		m.goneWard(e)
		if m.alone.left = e.Left; e.Left { // it says itself what becomes of its hosts
			m.leavers.note(e.Node, m.now)
			break
		}
		m.apart.parted(e.Node)
		m.copies.died = m.now
		m.absent.died.note(e.Node, m.now)
		if e.Near { // of others word comes late: they may have been away for long
			m.absent.own = m.now.Add(m.cfg.Absent)
		}
		m.giveUp(e.Node)
		m.goneTarget(e.Node)
	case Found:
		m.found(e)
	case Offered:
		m.came++
		m.offered(e)
	case Recorded:
		call(m.recording, e.ID, e)
	case Known:
		call(m.reading, e.ID, e)
	case Taken:
		call(m.taking, e.ID, e)
	case Swept:
		m.swept(e)
	case Opened:
		if m.cfg.Met { // they may be yet to come back, too
			m.absent.own = m.now.Add(m.cfg.Absent)
		}
		m.opened(e.Host, e.Open, 0)
	case Holding:
		m.holdsFromBefore(e.Host)
	case Finished:
		m.finished(e)
	case Released:
		m.released(e)
	case Wanted:
		m.wanted(e.Hosts)
	case Leave:
		m.leave()
	case Load:
		m.loaded(e)
	case Spared:
		m.spared(e)
	case Change:
		m.changeRecord(e.Data)
	case Add:
		m.takeChunk(e.Data, m.cfg.Width)
	case Gather:
		m.gather(e.Reports, func(t Tally) { m.do(Gathered{Tag: e.Tag, Tally: t}) })
	case Locate:
		m.locate(e)
	case AtRisk:
		m.grewRisks(e)
	case Placed:
		m.placed(e.Names)
	case RiskRead:
		call(m.risks.reading, e.ID, e)
	case RiskWritten:
		if f := m.risks.writing[e.ID]; f != nil {
			delete(m.risks.writing, e.ID)
			f()
		}
	case Refetched:
		m.refetched(e.Node)
	case Tick:
	}
}

// call calls what waits for an answer, if that is waited for.
func call[E any](waiting map[uint64]func(E), id uint64, e E) {
	if f := waiting[id]; f != nil {
		delete(waiting, id)
		f(e)
	}
}

// record has the history record links of a host, and calls f when that is done.
func (m *Machine) record(host string, links []Link, f func(Recorded)) {
	m.recordNew(host, links, func(r Recorded, _ []Link) { f(r) })
}

// recordNew does the same. f sees to those that are open and were not known before.
func (m *Machine) recordNew(host string, links []Link, f func(r Recorded, fresh []Link)) {
	if g := m.copies.under[host]; g != nil {
		g.changed = true
	}
	m.last++
	works := anyOpen(links)
	if works {
		m.entering++
	}
	m.recording[m.last] = func(r Recorded) {
		if works {
			m.entering--
		}
		fresh := newOf(links, r.Before)
		m.opened(host, r.Open, len(fresh))
		f(r, fresh)
	}
	m.do(Record{ID: m.last, Host: host, Links: links})
}

// newOf are those of some links that are open and were not known before, each once.
func newOf(links []Link, before []State) (fresh []Link) {
	met := map[Hash]bool{}
	for i, s := range before {
		if k := links[i]; s == Unknown && k.State == Dispatched && !met[k.Hash] {
			met[k.Hash] = true
			fresh = append(fresh, k)
		}
	}
	return fresh
}

// read has links of a host read, and calls f with them.
func (m *Machine) read(host, from string, all bool, f func(Known)) {
	m.last++
	m.reading[m.last] = f
	m.do(Read{ID: m.last, Host: host, From: from, All: all})
}

// neighbours looks again at whose all hosts are that this node has something to do with.
func (m *Machine) neighbours() {
	m.meet()
	m.publish()
	m.lookAgain()
	m.tellCounts()
	m.seekEnd()
}

func (m *Machine) lookAgain() {
	switch {
	case m.leaving: // those who have come may take what nobody was there to take
		m.sweepSoon()
		return
	case !m.now.Before(m.fresh):
		return
	}
	m.moveHeld()
	m.lookAtHosts()
	m.sweepSoon()
}

// Idle reports whether this node has nothing to do for the crawl, and nothing on its way that could give something to
// do to another one. What is known of URLs that are done may be on its way.
func (m *Machine) Idle() bool { return m.Unrest() == "" }

// Unrest says what keeps this node from being idle; "" if nothing does.
func (m *Machine) Unrest() string {
	switch {
	case m.entering > 0:
		return fmt.Sprintf("URLs are being recorded for %d others", m.entering)
	case len(m.taking) > 0:
		return fmt.Sprintf("the engine is to take %d batches", len(m.taking))
	case m.working > 0:
		return fmt.Sprintf("%d messages of others are being done", m.working)
	case len(m.offers) > 0:
		return fmt.Sprintf("%d batches of links are being claimed", len(m.offers))
	case !m.leaving && !m.now.Before(m.fresh):
		return "the node does not know its place"
	case !m.leaving && len(m.hosts) > 0:
		return fmt.Sprintf("%d hosts have URLs that are not done: %v", len(m.hosts), m.hosts[sortedKeys(m.hosts)[0]])
	case m.posted > 0:
		return fmt.Sprintf("%d items are on their way to others", m.posted)
	case !m.leaving && m.missing() != "":
		return fmt.Sprintf("%s is missed: what it has fetched may have to be fetched again", m.missing())
	}
	return ""
}

// sends reports whether anything is on its way to others, or is being done for them.
func (m *Machine) sends() bool {
	for _, l := range m.lanes {
		if len(l.queue)+len(l.flights) > 0 {
			return true
		}
	}
	return len(m.recording)+len(m.inbound) > 0
}

// String says what becomes of a host.
func (h *outstanding) String() string {
	return fmt.Sprintf("%s: open %d, first %v, target %q, queue %d, reread %v, sure %v, ensuring %v, claims %d, "+
		"finding %v, reading %v, flying %v, resting %v, quiet %d", h.host, h.open, h.first, h.target, len(h.queue), h.reread,
		h.sure,
		h.ensuring, len(h.claims), h.finding, h.reading, h.flying, h.resting, h.quiet)
}

// timers are what is to be called at a time.
type timers struct{ all []timer }

type timer struct {
	at   time.Time
	seq  uint64
	f    func()
	over *bool // f is to be called no more; may be nil
}

// at has f called when a time has come, unless it is over by then.
func (m *Machine) at(at time.Time, over *bool, f func()) {
	m.last++
	heap.Push(&m.timers, timer{at, m.last, f, over})
}

// after has f called when so long has passed.
func (m *Machine) after(d time.Duration, f func()) { m.at(m.now.Add(d), nil, f) }

func (t *timers) fire(now time.Time) {
	for len(t.all) > 0 && !t.all[0].at.After(now) {
		if first := heap.Pop(t).(timer); first.over == nil || !*first.over {
			first.f()
		}
	}
}

// next is when the next one's time comes.
func (t *timers) next() (at time.Time, ok bool) {
	for len(t.all) > 0 {
		if first := &t.all[0]; first.over == nil || !*first.over {
			return first.at, true
		}
		heap.Pop(t)
	}
	return time.Time{}, false
}

func (t *timers) Len() int { return len(t.all) }

func (t *timers) Less(i, j int) bool {
	return cmp.Or(t.all[i].at.Compare(t.all[j].at), cmp.Compare(t.all[i].seq, t.all[j].seq)) < 0
}

func (t *timers) Swap(i, j int) { t.all[i], t.all[j] = t.all[j], t.all[i] }

func (t *timers) Push(x any) { t.all = append(t.all, x.(timer)) }

func (t *timers) Pop() any {
	last := t.all[len(t.all)-1]
	t.all[len(t.all)-1] = timer{}
	t.all = t.all[:len(t.all)-1]
	return last
}
