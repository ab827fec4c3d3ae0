// Package meshnode runs an engine as a node of a mesh crawl, which has no central coordinator. It executes the actions
// of a [peer.Peer] over a messenger and a history, and sends the engine's links to the nodes that remember them.
//
// One goroutine, Run's loop, passes events to the peer and starts its actions. The loop never blocks: slow operations
// run in other goroutines and return as events.
package meshnode

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/base/advice"
	"kumo/internal/base/item"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/base/wait"
	"kumo/internal/base/weburl"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/member/peer"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/history"
)

var (
	// ErrLeft means that the node has transferred all its data to others, on request.
	ErrLeft = errors.New("the node has left the crawl")
	// ErrAlone means that a node that should leave knows no other node that could take its data. It retains the data.
	ErrAlone = errors.New("no other node is known that could take over this node's data")
)

// errGarbled is the error for a message that cannot be decoded.
var errGarbled = errors.New("invalid message")

// ErrSettingsUnknown means that links cannot be read before the crawl's settings are known.
var ErrSettingsUnknown = errors.New("the crawl's settings are not known yet")

// An Engine is the part of crawl.Engine that a node uses. Its methods are called concurrently.
type Engine interface {
	// TakeDispatched enqueues links that this node should fetch, the data of a [member.Batch]. It reports which are
	// already done. After an error, none or all may be enqueued.
	TakeDispatched(ctx context.Context, data []byte) (done []bool, err error)
	// TakeRevisits is TakeDispatched for visits that are not the first.
	TakeRevisits(ctx context.Context, all []item.Revisit) (done []bool, err error)
	// RevisitDue returns when such a visit is due.
	RevisitDue(r *item.Revisit) time.Time
	// Revisits reports whether URLs are visited again, and whether that goes on forever.
	Revisits() (enabled, continuous bool)
	// ReleaseHosts releases hosts: see crawl.Engine.
	ReleaseHosts(ctx context.Context, hosts []string, owed func(host string, asked, wait time.Duration)) error
	// ImportDelay sets a host's requested delay, and the time until the next request.
	ImportDelay(host string, asked, wait time.Duration)
	// HostCookies returns the cookies that servers have set for a host, up to most bytes, for AddCookies of another
	// node's engine, which validates them.
	HostCookies(host string, most int) []byte
	AddCookies(host string, data []byte) error
	// QueuedHosts calls f with each host that has pending URLs. It is called before the engine runs.
	QueuedHosts(f func(host string) error) error
	HasWork(host string) bool // the host has pending, active or unreported URLs
	Share(nodes int)          // sets the known number of nodes, to limit the joint rate at shared addresses
	Idle() bool               // nothing is pending, in progress or bound for other nodes
	Received() int64          // number of inputs received so far
	// Queues returns up to most hosts with pending URLs, longest queues first.
	Queues(ctx context.Context, most int) ([]strategy.Queue, error)

	// Reoffer puts URLs whose records were lost with another node into the outbox. It returns when this is durable.
	Reoffer(ctx context.Context, items []item.Item) error
	Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch
	Answered(from strategy.Node, batch uint64, refused []int, now time.Time)
	Outbox() (links int, bytes int64)
	Unrouted() (hosts []string, links []int)
	RetryDeferred(hosts []string)

	// AddSeeds adds all seeds to the scope, and enqueues those for whose hosts take is true. It returns when this is
	// durable.
	AddSeeds(ctx context.Context, seeds []weburl.URL, take func(host string) bool) error
	AddScopeSeed(u weburl.URL) error // adds the redirect target of a seed to the scope
	// SetPageShare, CountedPages and UsedPages are for the crawl's page limit: see crawl.Engine.
	SetPageShare(pages int64) (ceiling int64)
	CountedPages() int64
	UsedPages() int64

	Pause(on bool)
	Finish() // ends the run when no URLs are pending
}

// Figures is the completed and pending work of an engine.
type Figures struct {
	control.Work
	Bytes int64 // in this folder, all runs
	Peers int   // connected nodes
	stats.Condition
}

// Config configures a Node.
type Config struct {
	Messenger    bus.Messenger
	Overlay      overlay.Config // including Self
	Mesh         mesh.Config    // New sets the callbacks, this node's identity and stored state
	Known        []overlay.Contact
	WaitForPeers bool // if Known is empty, wait for Join instead of starting as the first node
	// Contact returns a node's addresses, and Learn is called with those of other nodes; nil if nodes are found by
	// name.
	Contact func(strategy.Node) overlay.Contact
	Learn   func(overlay.Contact)

	// Dir is the folder for the node's data other than URLs. "": nothing is stored, and the engine runs regardless of
	// the crawl's record.
	Disk vfs.FS
	Dir  string

	Router  *Router
	History *history.DB
	Places  Places
	// Read calls f with each link of a batch from an engine's outbox, with its item's key, and its host or slice. It
	// returns ErrSettingsUnknown if it cannot determine slices yet.
	Read func(data []byte, f func(host, key string, link []byte)) error

	// Slice returns the host or slice of a URL, as in Read. It is only called once the crawl was started.
	Slice func(url string) string

	// Query answers a query about this node's part of the crawl within a few seconds, both in JSON. It may be nil.
	Query func(ctx context.Context, query json.RawMessage) ([]byte, error)

	// The following functions are called by the loop and must not block. They may be nil.
	Load    func() (load mesh.Load, known bool) // of the engine
	Figures func() Figures                      // of the engine
	// Report returns the engine's report on the crawl; nil: there is none yet.
	Report  func() *stats.Report
	Limits  func(settings map[string][]string) desired.Limits
	Changed func()           // called when the crawl's record changes
	Ended   func(mesh.Ended) // called when all nodes are idle
	// ApplySettings is called with the crawl's settings after each change, sequentially. It may block, and may be nil.
	ApplySettings func(settings map[string][]string)
	// SaveReport saves the report of all nodes, at the end of the crawl. It may block, and may be nil.
	SaveReport func(all *stats.Report)
	Version    string // of this kumo
	Address    string // of this node's API; may be empty
	Browser    string // program that renders pages; "" if the node has none
	Log        *slog.Logger
}

// A Node is a node of a mesh crawl. It is used for one Run. New sets its fields, which do not change; each part guards
// its own state. Its methods are safe for concurrent use.
type Node struct {
	cfg         Config
	self        strategy.Node
	inbox       *inbox
	tasks       *tasks
	engine      *engineRef
	msgs        *messages
	asker       *requester
	survey      *survey
	userQueries *queryServer
	links       *linkExchange
	risks       *atRisk
	history     *historyWorker
	due         *dueVisits
	store       *store
	watcher     *recordWatcher
	queries     *queries
	loop        *loop
	server      *control.Server
}

// An engineRef refers to the node's engine, once it is attached. It is safe for concurrent use.
type engineRef struct{ p atomic.Pointer[Engine] }

// get returns nil before Attach.
func (r *engineRef) get() Engine {
	if e := r.p.Load(); e != nil {
		return *e
	}
	return nil
}

// setPageShare limits the engine's pages; there must be an engine, or no limit.
func (r *engineRef) setPageShare(pages int64) (ceiling int64) {
	if e := r.get(); e != nil {
		return e.SetPageShare(pages)
	}
	return max(pages, 0)
}

// New creates a node. Even before it has an engine (see Attach), it joins the crawl and remembers the URLs that other
// nodes find.
func New(cfg Config) (*Node, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Contact == nil {
		cfg.Contact = func(n strategy.Node) overlay.Contact { return overlay.Contact{Node: string(n)} }
	}
	if cfg.Learn == nil {
		cfg.Learn = func(overlay.Contact) {}
	}
	n := &Node{cfg: cfg, self: strategy.Node(cfg.Overlay.Self.Node), inbox: newInbox(), tasks: &tasks{},
		engine: &engineRef{}, history: &historyWorker{db: cfg.History, signal: make(chan struct{}, 1)}}
	kept, record, chunks, err := openStore(cfg.Disk, cfg.Dir, cfg.Log)
	if err != nil {
		return nil, err
	}
	n.store = kept
	risks, lists, err := openRisks(cfg.Disk, cfg.Dir, n.self)
	if err != nil {
		return nil, err
	}
	n.msgs = newMessages(&n.cfg)
	n.asker = newRequester(n.msgs)
	n.survey = &survey{n.self, cfg.Slice, cfg.History, n.Locate, n.asker, n.msgs, n.tasks, cfg.Log,
		make(chan struct{}, maxKnownRequests)}
	n.userQueries = &queryServer{self: n.self, answerOwn: cfg.Query, asker: n.asker, msgs: n.msgs, tasks: n.tasks,
		log: cfg.Log}
	n.risks = &atRisk{risks, cfg.Places, n.engine, n.inbox, n.tasks, cfg.Log}
	n.links = &linkExchange{n.self, cfg.Read, n.engine, n.msgs, n.inbox}
	l := &loop{cfg: &n.cfg, inbox: n.inbox, tasks: n.tasks, engine: n.engine, msgs: n.msgs, links: n.links,
		intake: &intake{engine: n.engine, inbox: n.inbox, tasks: n.tasks, risks: n.risks, log: cfg.Log}, risks: n.risks,
		history: n.history, store: n.store, kick: make(chan struct{}, 1),
		results: &resultSaver{cfg: &n.cfg, tasks: n.tasks}}
	l.alone.Store(true)
	n.queries = &queries{step: l.step, gathers: map[uint64]func(mesh.Tally){}, locates: map[uint64]func(mesh.Located){},
		results: map[uint64]func(mesh.GatheredResults){}}
	n.watcher = newRecordWatcher(l, n.queries, chunks, record)
	figures := n.attachedFigures()
	l.report = &reporter{self: n.self, version: cfg.Version, address: cfg.Address, browser: cfg.Browser,
		figures: figures, until: l.until,
		engine: n.engine, msgs: n.msgs, history: n.history, watcher: n.watcher}
	l.queries, l.watcher, n.loop = n.queries, n.watcher, l
	n.due = &dueVisits{history: cfg.History, engine: n.engine, inbox: n.inbox, router: cfg.Router,
		runs: n.watcher.runs, dueHere: func(host string) bool { return l.peer.Machine().DispatchesDue(host) }}
	n.watcher.dueIdle = n.due.idle
	n.server = control.NewServer(n.self, n, func(to strategy.Node, data []byte) {
		n.msgs.send(to, data[0], data[1:])
	}, cfg.Log)
	m := cfg.Mesh
	m.HasPending = func(host string) bool {
		e := n.engine.get()
		return e != nil && e.HasWork(host)
	}
	m.Status = mesh.StatusConfig{Engine: l.report.isIdle, Figures: l.report.sums, Report: l.report.json}
	if figures != nil {
		m.Status.Pages = func() int64 { return figures().Pages }
	}
	m.ReadChunk = n.store.chunk
	if cfg.Limits != nil && figures != nil {
		m.Pages = mesh.PageConfig{Use: l.report.pageUse, SetShare: n.engine.setPageShare}
	}
	if cfg.Report != nil {
		x := &resultReports{cfg.Report, cfg.Log}
		m.Results = mesh.ResultsConfig{Own: x.own, Merge: x.merge}
	}
	terms, err := n.earlierTerms(m.Terms)
	if err != nil {
		return nil, err
	}
	m.Earlier = mesh.Earlier{MetOthers: len(cfg.Known) > 0, Terms: terms, Counts: n.store.counts(cfg.Log), Record: record,
		Results: n.store.results(cfg.Log),
		Risks:   lists}
	for _, c := range chunks {
		m.Earlier.Chunks = append(m.Earlier.Chunks, c.id)
	}
	m.Process, m.Log = cmp.Or(m.Process, rand.Uint64()), cfg.Log
	n.cfg.Mesh = m
	l.peer = peer.New(peer.Config{Overlay: cfg.Overlay, Mesh: m})
	l.report.peer = l.peer
	for _, host := range cfg.History.OpenHosts() {
		n.inbox.send(mesh.Opened{Host: host, Open: cfg.History.OpenURLs(host)})
	}
	if len(cfg.Known) > 0 || !cfg.WaitForPeers {
		n.Join(cfg.Known...)
	}
	return n, nil
}

// attachedFigures returns Config.Figures; nil if that is. Before Attach, they have no pages and bytes: the pages of
// earlier processes are then in the counts of the mesh, and only an attached engine's are in the divisions of the page
// limit.
func (n *Node) attachedFigures() func() Figures {
	if n.cfg.Figures == nil {
		return nil
	}
	return func() Figures {
		f := n.cfg.Figures()
		if n.engine.get() == nil {
			f.Pages, f.Bytes = 0, 0
		}
		return f
	}
}

// earlierTerms returns the terms of the crawl that the node's folder belongs to. They must not contradict those of the
// configuration.
func (n *Node) earlierTerms(own mesh.Terms) (t mesh.AgreedTerms, err error) {
	if t, err = n.store.terms(); err != nil || t.Strategy == "" {
		return t, err
	}
	own.Strategy = cmp.Or(own.Strategy, mesh.Strategy)
	if err := own.Check(t.Terms, "this folder's crawl"); err != nil {
		return t, advice.Usage("%w", err)
	}
	return t, nil
}

// Attach gives the node its engine, once, before the engine's Run. From then on it fetches its own hosts. The queues of
// an earlier process are released; other nodes dispatch unfinished URLs again.
func (n *Node) Attach(e Engine) error {
	if n.cfg.Dir != "" {
		e.Pause(true) // until the record and the seeds are known
	}
	var held []peer.Event
	err := e.QueuedHosts(func(host string) error {
		held = append(held, mesh.Holding{Host: host})
		return nil
	})
	if err != nil {
		return fmt.Errorf("read hosts with pending URLs: %w", err)
	}
	if !n.engine.p.CompareAndSwap(nil, &e) {
		return errors.New("the node already has an engine")
	}
	n.inbox.send(held...)
	n.inbox.post(func() { n.watcher.dirty = true })
	return nil
}

// Key returns the position of a host's records in the ID space.
func Key(host string) xor.ID { return xor.Of("backup", host) }

// Run runs the node concurrently with the engine's Run. It returns nil when the crawl is done; otherwise ErrStopped,
// ErrLeft, ErrAlone, the first error, or ctx's cause.
func (n *Node) Run(ctx context.Context) error {
	n.tasks.begin(ctx)
	l := n.loop
	defer close(n.inbox.done)
	defer n.tasks.all.Wait()
	defer n.tasks.stop(nil)
	defer n.cfg.Router.end() // blocks new requests
	l.wake = time.NewTimer(time.Hour)
	defer l.wake.Stop()
	n.tasks.run("receive messages", n.receive)
	n.tasks.run("update the URL history", func(ctx context.Context) error {
		return n.history.run(ctx, func(all ...mesh.Event) { sendAll(n.inbox, all) })
	})
	n.tasks.run("maintain the URL history", n.maintainHistory)
	n.tasks.run("find visits that are due", n.due.run)
	n.tasks.run("write lists of pages at risk", n.risks.lists.run)
	if n.cfg.Places.Has != nil {
		n.tasks.run("check for uploaded files", n.risks.pollPlace)
	}
	if n.cfg.ApplySettings != nil {
		n.tasks.run("apply the crawl's settings", n.watcher.applySettings)
	}
	kept := make(chan error, 1)
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		err := n.store.run(keeping)
		if err != nil {
			n.tasks.stop(err)
		}
		kept <- err
	}()
	l.execute(l.peer.Start(l.clock.at(time.Now()), nil))
	l.publish(l.peer.Machine().View())
	why := l.run()
	l.saveCounts()
	n.watcher.cancelEnd()
	n.tasks.stop(nil)
	n.tasks.all.Wait()
	stop()
	if err := <-kept; err != nil {
		return err
	}
	if errors.Is(why, errDone) {
		return nil
	}
	return why
}

const (
	pumpEvery      = 100 * time.Millisecond
	countsInterval = time.Minute // between writes of the page counts
	checkInterval  = time.Second // between updates without a trigger; another node may have failed
)

func (n *Node) maintainHistory(ctx context.Context) error {
	for range wait.Every(ctx, time.Second) {
		if err := n.cfg.History.Maintain(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AtRisk records fetched pages whose records are only on this disk. It returns when this node's keepers know them.
func (n *Node) AtRisk(ctx context.Context, pages []AtRisk) error { return n.risks.add(ctx, pages) }

// receive dispatches messages until ctx ends.
func (n *Node) receive(ctx context.Context) error {
	err := n.cfg.Messenger.Receive(ctx, func(from strategy.Node, data []byte) {
		if len(data) == 0 || n.inbox.full() || n.store.full() {
			return // the sender will repeat it
		}
		kind, data := data[0], slices.Clone(data[1:])
		switch kind {
		case kindPeer:
			n.inbox.send(peer.Message{From: n.msgs.contact(from), Data: data})
		case kindOffer:
			if number, size := binary.Uvarint(data); size > 0 {
				n.links.receiveOffer(from, number, data[size:])
			}
		case kindOfferReply:
			n.links.receiveReply(from, data)
		case kindKnownRequest:
			n.survey.answer(from, data)
		case kindQueryRequest:
			n.userQueries.answer(from, data)
		case kindKnownReply, kindQueryReply:
			n.asker.handleReply(from, kind, data)
		case control.KindRequest:
			n.tasks.run("answer a request", func(ctx context.Context) error {
				n.server.Handle(ctx, from, data)
				return nil
			})
		default: // from a newer kumo
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Finished is called by the engine with the keys of fetched or failed URLs, after all their links were claimed.
func (n *Node) Finished(host string, keys []string) {
	f := mesh.Finished{Host: host, Hashes: make([]mesh.Hash, len(keys))}
	for i, key := range keys {
		f.Hashes[i] = mesh.Hash(history.HashOf(key))
	}
	n.inbox.send(f)
}

// NewScopeSeed is called by the engine with the redirect target of a seed, which all nodes add to their scope.
func (n *Node) NewScopeSeed(url string) { n.watcher.addScopeSeed(url) }

// Lost reports that a node is unreachable.
func (n *Node) Lost(node strategy.Node) { n.inbox.send(peer.Lost{Node: string(node)}) }

// Join joins the crawl through other contacts than before; without any, the node continues alone until others connect.
func (n *Node) Join(contacts ...overlay.Contact) { n.inbox.send(peer.Join{Contacts: contacts}) }
