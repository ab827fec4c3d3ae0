package mesh

import (
	"fmt"
	"maps"
	"time"

	"kumo/internal/base/splitmix"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// A Machine is a node's part in a mesh. It is a pure state machine: it processes events, and returns actions for the
// caller to execute. Its methods are called by one goroutine at a time.
//
// It passes events and messages to its parts. Each part guards one protocol, which its comment describes. New connects
// the parts: each gets what it needs of others as an interface or a function.
type Machine struct {
	core  *core
	place *place
	// messages
	inbox   *inbox
	mail    *mail
	lookups *lookups
	history *history
	// a host's first backup and other backups
	claims    *claims
	hosts     *openHosts
	dueVisits *dueVisits
	reviews   *reviews
	copies    *copies
	absences  *absences
	// nodes that may learn that URLs are done
	disclosure *disclosure
	// a host's target, and finders of links
	holdings *holdings
	routes   *routes
	policy   balancePolicy
	lending  *lending
	// data that all nodes share
	gossip      *gossip
	counts      *counts
	gatherings  *gatherings
	termination *termination
	pageShares  *pageShares
	results     *results
	risks       *risks
}

// New returns a machine. Its caller passes events to the overlay, which contains this node, too.
func New(cfg Config) *Machine {
	cfg.setDefaults()
	c := &core{self: cfg.Self, log: cfg.Log, last: splitmix.Next(cfg.Process) >> 24}
	m := &Machine{core: c, place: newPlace(c, cfg.Overlay, cfg.Width, cfg.Backups), mail: newMail(c),
		inbox: newInbox(c), history: newHistory(c)}
	m.place.alone = isolation{core: c, wait: cfg.AloneWait, resume: m.resumeAlone}
	m.lookups = newLookups(c, m.place, cfg.MaxLookups)
	m.absences = newAbsences(c, m.place, cfg.AbsentWait, cfg.Earlier.MetOthers)
	m.connectBackup(&cfg)
	m.connectTarget(&cfg)
	m.connectStatus(&cfg)
	m.history.changing, m.history.opened = m.copies.changing, m.hosts.opened
	m.place.publish()
	c.out = nil // a caller that needs the view calls View
	return m
}

// connectBackup creates the parts of a node that is a backup of hosts.
func (m *Machine) connectBackup(cfg *Config) {
	c, p := m.core, m.place
	d := &disclosure{core: c, place: p, lookups: m.lookups, tooFew: true} // an earlier process may have been alone
	recalls := &recalls{core: c, place: p, mail: m.mail, lookups: m.lookups, pending: map[string]bool{}}
	hosts := &openHosts{core: c, place: p, mail: m.mail, lookups: m.lookups, history: m.history, timings: newTimings(c),
		byHost: map[string]*openHost{}}
	hosts.died = func(n strategy.Node) bool { return m.absences.died.has(n, c.now) }
	hosts.checks = &checks{core: c, mail: m.mail, every: cfg.CheckEvery, replyHandler: hosts.checkHandler,
		target: map[strategy.Node]*check{}}
	hosts.agreements = &agreements{core: c, place: p, mail: m.mail, history: m.history, absences: m.absences,
		hosts: hosts}
	hosts.marks = &marks{absences: m.absences, place: p, mail: m.mail, history: m.history, mayLearn: d.mayLearn, hosts: hosts,
		differs: recalls.differs}
	transfers := &transfers{mail: m.mail, history: m.history, mayLearn: d.mayLearn, target: hosts.target}
	m.claims = &claims{core: c, place: p, mail: m.mail, history: m.history, absences: m.absences, disclosure: d,
		hosts: hosts, differs: recalls.differs, offers: map[offerKey]bool{}, byHost: map[string][]*claim{}}
	hosts.closed = m.claims.forget
	m.dueVisits = &dueVisits{core: c, place: p, claims: m.claims, claiming: map[string]bool{}}
	m.reviews = &reviews{core: c, place: p, mail: m.mail, history: m.history, hosts: hosts}
	m.copies = &copies{byLists: cfg.Terms.Strategy == StrategyPaper, core: c, place: p, absences: m.absences,
		lookups: m.lookups, transfers: transfers, hosts: hosts, postponed: d.pending, pending: map[string]*hostCopy{}}
	d.transfers, d.hosts, d.disclosed = transfers, hosts, m.copies.sweepSoon
	m.disclosure, m.hosts = d, hosts
}

// connectTarget creates the parts of a node that fetches hosts, and has the mail pass items to them and to the backup's
// parts.
func (m *Machine) connectTarget(cfg *Config) {
	c, p, lent, former := m.core, m.place, lent{}, newFormer(m.core)
	reports := &reports{core: c, place: p, mail: m.mail, lookups: m.lookups, mayLearn: m.disclosure.mayLearn}
	handovers := newHandovers(c)
	handovers.place, handovers.mail, handovers.lookups, handovers.lent = p, m.mail, m.lookups, lent
	handovers.absences, handovers.timings, handovers.former = m.absences, m.hosts.timings, former
	m.holdings = &holdings{core: c, place: p, lookups: m.lookups, reports: reports, handovers: handovers,
		cookies: newCookieSharing(c, p, m.mail, cfg.ShareCookies),
		timings: m.hosts.timings, lent: lent, mayLearn: m.disclosure.mayLearn, pending: cfg.HasPending,
		byHost: map[string]*holding{}, enqueuing: map[uint64]func(Enqueued){}}
	handovers.hosts = m.holdings
	m.holdings.cookies.handover = m.holdings.of
	m.routes = newRoutes(c, p, m.lookups, m.holdings.contact, cfg.MaxRoutes)
	lending := &lending{core: c, place: p, mail: m.mail, lookups: m.lookups, hosts: m.holdings, lent: lent,
		former: former, pending: cfg.HasPending, process: cfg.Process, guests: map[string]*guest{},
		lenders: map[strategy.Node]int64{}}
	m.lending = lending
	t := newTerms(c, p, cfg.Terms, cfg.Earlier.Terms)
	if cfg.Terms.Strategy == StrategyPaper {
		paper := &paperBalance{core: c, place: p, mail: m.mail, lending: lending, cfg: cfg.Balance}
		m.policy, t.apply = paper, paper.applyTerms
	} else {
		m.policy = newTimeBalance(c, p, m.mail, m.lookups, lending, cfg.HasPending)
	}
	m.gossip = &gossip{core: c, place: p, terms: t, read: cfg.ReadChunk, record: cfg.Earlier.Record}
	lending.admit = m.policy.admit
	m.mail.handlers = map[byte]itemHandler{
		itemStore: m.claims.store, itemMarks: m.hosts.marks.receive, itemDispatch: m.holdings.dispatched,
		itemYield: handovers.yield, itemMoved: atOnce(m.hosts.moved), itemOpen: atOnce(m.reviews.count),
		itemCheck: atOnce(m.holdings.check), itemRecall: atOnce(m.holdings.recall),
		itemGive: atOnce(lending.acceptGuest), itemReturn: atOnce(lending.returned),
		itemGuest: atOnce(lending.answerGuest), itemPass: atOnce(lending.passed), itemRevoke: atOnce(lending.revoked),
		itemLender: atOnce(lending.answerLender),
	}
	if cfg.ShareCookies {
		m.mail.handlers[itemCookies] = m.holdings.cookies.receive
	}
	maps.Copy(m.mail.handlers, m.policy.handlers())
}

// connectStatus creates the parts that collect data of all nodes, and has the inbox pass messages to all parts.
func (m *Machine) connectStatus(cfg *Config) {
	c, p := m.core, m.place
	m.counts = newCounts(c, p, cfg.Status.Pages, cfg.Earlier.Counts)
	own := &status{core: c, cfg: cfg.Status, process: cfg.Process, idle: m.Idle, partial: m.absences.partial,
		addGone: m.counts.addGone}
	m.reviews.engine = own.engine
	m.gatherings = &gatherings{core: c, place: p, own: own.own, report: cfg.Status.Report,
		all: map[gatherKey]*gathering{}}
	m.gossip.died = func() []strategy.Node { return m.absences.died.list(c.now) }
	for _, id := range cfg.Earlier.Chunks {
		m.gossip.chunks.add(id)
	}
	m.termination = &termination{core: c, place: p, gather: m.gatherings.gather, own: own.own, id: p.endID(),
		version: func() uint64 { return m.gossip.record.Version }}
	m.pageShares = &pageShares{core: c, place: p, cfg: cfg.Pages, gather: m.gatherings.gatherPages,
		grant: m.gatherings.grant, share: func() { m.counts.send() }, isHere: m.termination.isHere,
		awaits: func() bool { return c.now.Before(m.absences.untilDied) }}
	m.gatherings.pages, m.gatherings.accept = m.pageShares.tally, m.pageShares.accept
	m.results = newResults(c, p, cfg.Results, cfg.Status.Pages, cfg.Earlier.Results)
	if m.results.cfg.Own != nil {
		m.gatherings.results, m.gatherings.merge = m.results.own, cfg.Results.Merge
	}
	m.risks = newRisks(c, p, m.lookups, cfg.LostAfter, cfg.Earlier.Risks)
	m.inbox.handlers = map[byte]messageHandler{
		messageItems: m.mail.received, messageReplies: m.mail.acknowledged,
		messageGather: m.gatherings.asked, messageTally: m.gatherings.answered, messageGrant: m.gatherings.granted,
		messageResult: m.results.receive, messageWhole: m.gatherings.received,
		messageRecord: m.gossip.receiveRecord, messageVersion: m.gossip.receiveVersion,
		messageTerms: m.gossip.terms.receive,
		messageChunk: m.gossip.receiveChunk, messageHave: m.gossip.receiveHave, messageWant: m.gossip.receiveWant,
		messageCounts: m.counts.receive, messageRisks: m.risks.wards.receive, messageHaveRisks: m.risks.acknowledged,
	}
}

// Start appends the first actions.
func (m *Machine) Start(now time.Time, out []Action) []Action {
	m.core.begin(now, out)
	m.absences.start()
	m.gossip.terms.start()
	m.core.after(agreeEvery, m.gossip.sync)
	m.core.after(reviewQuiet, m.reviews.run)
	m.lending.start()
	m.counts.start()
	m.results.start()
	m.risks.watch()
	return m.end()
}

// Step processes the events since the last call, in order, and appends the resulting actions, in order, to out. The
// machine owns the events' data from then on.
func (m *Machine) Step(now time.Time, events []Event, out []Action) []Action {
	m.core.begin(now, out)
	for _, e := range events {
		m.handle(e)
	}
	m.core.timers.fire(now)
	return m.end()
}

func (m *Machine) end() []Action {
	m.mail.flush()
	return m.core.end()
}

func (m *Machine) handle(e Event) {
	switch e := e.(type) {
	case Message:
		m.inbox.receive(e.From, e.Data)
	case NeighborsChanged:
		m.updateNeighbors()
	case Fresh:
		m.refresh(e.Until)
	case NodeGone:
		m.gone(e)
	case Found:
		m.lookups.found(e)
	case Offered:
		m.core.activity++
		m.claims.offered(e)
	case Recorded:
		call(m.history.recording, e.ID, e)
	case Known:
		call(m.history.reading, e.ID, e)
	case Enqueued:
		call(m.holdings.enqueuing, e.ID, e)
	case Swept:
		m.copies.swept(e)
	case Opened:
		m.absences.foundOpen()
		m.hosts.opened(e.Host, e.Open, 0)
	case Holding:
		m.holdings.foundAtStart(e.Host)
	case Finished:
		m.holdings.finished(e)
	case Due:
		m.dueVisits.due(e)
	case Released:
		m.holdings.released(e)
	case CookiesRead:
		call(m.holdings.cookies.reading, e.ID, e)
	case CookiesAdded:
		call(m.holdings.cookies.adding, e.ID, e)
	case Unrouted:
		m.routes.lookUp(e.Hosts)
	case Leave:
		m.leave()
	case Load:
		m.policy.loaded(e)
	case Spared:
		m.policy.spared(e)
	case Change:
		m.gossip.change(e.Data)
	case Add:
		m.gossip.addChunk(e.Data, m.place.width)
	case Gather:
		m.gatherings.gather(e.Reports, func(t Tally) { m.core.do(Gathered{Tag: e.Tag, Tally: t}) })
	case Locate:
		m.locate(e)
	case AtRisk:
		m.risks.lists.grown(e)
	case Uploaded:
		m.risks.lists.uploaded(e.Names)
	case RiskRead:
		call(m.risks.lists.sender.reading, e.ID, e)
	case RiskWritten:
		call(m.risks.wards.writing, e.ID, e)
	case Refetched:
		m.risks.wards.refetched(e.Node)
	case GatherResults:
		m.gatherings.gatherResults(e)
	case PageLimit:
		m.pageShares.setLimit(e.Pages)
	case Tick:
	}
}

// gone processes that a node no longer answers. A node that has left has passed its hosts on itself.
func (m *Machine) gone(e NodeGone) {
	m.risks.wards.gone(e)
	if m.place.alone.left = e.Left; e.Left {
		m.absences.left.add(e.Node, m.core.now)
		return
	}
	m.disclosure.gone(e.Node)
	m.copies.died = m.core.now
	m.absences.died.add(e.Node, m.core.now)
	if e.Near { // reports about other nodes come late: these may have been away for long
		m.absences.sawDeath()
	}
	m.mail.fail(e.Node)
	m.hosts.gone(e.Node)
	m.lending.gone(e.Node)
}

// updateNeighbors updates the roles of this node for all its hosts.
func (m *Machine) updateNeighbors() {
	m.disclosure.update()
	m.place.publish()
	m.updateHosts()
	m.gossip.terms.inform()
	m.counts.send()
	m.results.send()
	m.termination.schedule()
	m.pageShares.schedule()
}

func (m *Machine) updateHosts() {
	if m.place.leaving { // new nodes may store what no node was there to store
		m.copies.sweepSoon()
	} else if m.place.isFresh() {
		m.holdings.releaseMoved()
		m.lending.revokeMoved()
		m.hosts.updateAll()
		m.copies.sweepSoon()
	}
}

// replaced is how long the overlay's knowledge must have been stale for others to have this node's hosts.
const replaced = time.Second

// refresh processes until when the overlay's knowledge holds.
func (m *Machine) refresh(until time.Time) {
	stale := !m.place.isFresh()
	if stale && m.core.now.Sub(m.place.freshUntil) > replaced {
		m.holdings.releaseAll()
		m.hosts.resignAll()
	}
	if stale {
		m.place.publish()
		if m.place.alone.waits() {
			m.place.alone.fresh = until
			return
		}
	}
	if m.place.extend(until); stale {
		m.gossip.terms.placed()
		m.updateHosts()
	}
	m.termination.schedule()
	m.pageShares.schedule()
}

// resumeAlone continues as the only node: see isolation.
func (m *Machine) resumeAlone() {
	if m.place.leaving {
		return
	}
	m.core.log.Warn("no other node answers: continuing alone until one does")
	m.updateNeighbors()
	if m.place.alone.fresh.After(m.place.freshUntil) {
		m.refresh(m.place.alone.fresh)
	}
}

// leave passes everything on to other nodes: the hosts that are fetched here, and the whole history.
func (m *Machine) leave() {
	if m.place.leaving {
		return
	}
	m.place.leave()
	m.lending.leave()
	m.holdings.releaseAll()
	m.hosts.updateAll()
	m.copies.leave()
	m.core.after(sweepAfter, m.checkLeft)
}

// checkLeft checks regularly whether everything was passed on.
func (m *Machine) checkLeft() {
	if m.isPassedOn() {
		if m.copies.isEmpty() && !m.shareLast() {
			m.core.do(Left{})
			return
		}
		m.copies.sweepSoon() // something may have arrived since
	}
	m.core.after(pause, m.checkLeft)
}

// shareLast sends other nodes what they keep of this one, and reports whether there was anything to send.
func (m *Machine) shareLast() bool {
	if m.results.pages != nil && m.results.shared != m.results.pages() {
		m.results.renew()
	}
	counts, results := m.counts.send(), m.results.send()
	return counts || results
}

func (m *Machine) isPassedOn() bool {
	return len(m.holdings.byHost) == 0 && m.Idle() && !m.mail.busy() && len(m.history.recording) == 0 &&
		m.copies.isResting() && m.risks.wards.areShared()
}

// Balance returns the node's load, as of the last Load.
func (m *Machine) Balance() Balance { return m.policy.balance() }

// Moves returns what the node's sweeps over its history have done.
func (m *Machine) Moves() Moves { return m.copies.moved }

// View returns the last published view.
func (m *Machine) View() *View { return m.place.view }

// Closest reports whether this node is the closest to an id, as of the last Step.
func (m *Machine) Closest(id xor.ID) bool { return m.place.closest(id) }

// KnowsPlace reports whether this node knows its place, as of the last Step. Before that, and while its knowledge is
// stale, it has no hosts.
func (m *Machine) KnowsPlace() bool { return m.place.closest(m.place.id) }

// DetectsEnd reports whether this node is responsible for detecting the crawl's end.
func (m *Machine) DetectsEnd() bool { return m.termination.isHere() }

// FirstBackup returns the node to which links to a host are offered; false if it is not known: Unrouted has it looked
// up.
func (m *Machine) FirstBackup(host string) (strategy.Node, bool) { return m.routes.nodeFor(host) }

// Counts returns the numbers of pages that nodes have fetched, including this one, as far as known here.
func (m *Machine) Counts() map[strategy.Node]int64 { return m.counts.all() }

// Results returns the last reports of nodes on the crawl, including this one's, as far as known here.
func (m *Machine) Results() map[strategy.Node]Result { return m.results.all() }

// AwaitedUntil returns the end of the wait for nodes that have died and may come back; a zero time if none has died.
func (m *Machine) AwaitedUntil() time.Time { return m.absences.untilSeen }

// AloneSince returns since when this node has been alone because all others have died; a zero time if it is not.
func (m *Machine) AloneSince() time.Time { return m.place.alone.since }

// Idle reports whether this node has nothing to do for the crawl, and nothing in transit that could give another node
// something to do. Messages about done URLs may be in transit.
func (m *Machine) Idle() bool { return m.BusyReason() == "" }

// BusyReason returns why the node is not idle; "" if it is.
func (m *Machine) BusyReason() string {
	switch {
	case m.history.recordingOpen > 0:
		return fmt.Sprintf("recording URLs for %d requests", m.history.recordingOpen)
	case len(m.holdings.enqueuing) > 0:
		return fmt.Sprintf("the engine is enqueuing %d batches", len(m.holdings.enqueuing))
	case m.mail.executing > 0:
		return fmt.Sprintf("processing %d packets of other nodes", m.mail.executing)
	case m.holdings.scheduled > 0:
		return fmt.Sprintf("the next visits to %d URLs are not recorded by all backups", m.holdings.scheduled)
	case len(m.dueVisits.claiming) > 0:
		return fmt.Sprintf("dispatching due visits to %d hosts", len(m.dueVisits.claiming))
	case len(m.claims.offers) > 0:
		return fmt.Sprintf("claiming %d batches of links", len(m.claims.offers))
	case !m.place.leaving && !m.place.isFresh():
		return "the node does not know its place"
	case !m.place.leaving && len(m.hosts.byHost) > 0:
		return m.hosts.describeFirst()
	case m.mail.posted > 0:
		return fmt.Sprintf("%d items are in transit to other nodes", m.mail.posted)
	case !m.place.leaving && m.risks.wards.missing() != "":
		return fmt.Sprintf("%s is missing: its pages may have to be fetched again", m.risks.wards.missing())
	}
	return ""
}
