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
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/base/item"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/base/wait"
	"kumo/internal/base/weburl"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/member/peer"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/history"
)

var (
	// ErrLeft says that the node has given all it had to others, as it was asked to.
	ErrLeft = errors.New("the node has left the crawl")
	// ErrAlone says that a node that was asked to leave knows nobody to whom it could give what it has. It keeps that.
	ErrAlone = errors.New("no other node is known that could take over what this one has")
)

// errGarbled is a message that is none.
var errGarbled = errors.New("it is none of this kind")

// ErrSettingsUnknown is links that cannot be read before more is known of the crawl.
var ErrSettingsUnknown = errors.New("the crawl's settings are not known yet")

// An Engine is what a node needs of a crawl.Engine whose links are claimed. Its methods may be called by many
// goroutines at once.
type Engine interface {
	// TakeDispatched takes links in that this node is to fetch, a [member.Batch]'s data, and says which are done. After an
	// error none is taken, or nobody knows.
	TakeDispatched(ctx context.Context, data []byte) (done []bool, err error)
	// ReleaseHosts gives hosts up: see crawl.Engine.
	ReleaseHosts(ctx context.Context, hosts []string, owed func(host string, asked, wait time.Duration)) error
	// ImportDelay has a host left alone for a while, and asked no sooner than it asks for.
	ImportDelay(host string, asked, wait time.Duration)
	// QueuedHosts calls f with each host of which something waits. It is called before the engine runs.
	QueuedHosts(f func(host string) error) error
	HasWork(host string) bool // something of a host waits, is under way, or is not said yet
	Share(nodes int)          // so many crawl, as far as is known: a server that several ask is asked no more than by one
	Idle() bool               // nothing waits, is under way, or is bound for others
	Received() int64          // how often something was brought to it
	// Queues are hosts where URLs wait, those with the longest queues first, so many at most.
	Queues(ctx context.Context, most int) ([]strategy.Queue, error)

	// Reoffer puts URLs into the outbox whose records were lost with another node. It returns when that is durable.
	Reoffer(ctx context.Context, items []item.Item) error
	Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch
	Answered(from strategy.Node, batch uint64, refused []int, now time.Time)
	Outbox() (links int, bytes int64)
	Unrouted() (hosts []string, links []int)
	RetryDeferred(hosts []string)

	// AddSeeds takes seeds in: all into scope, and those to be fetched of whose hosts take is true. It returns when that
	// is durable.
	AddSeeds(ctx context.Context, seeds []weburl.URL, take func(host string) bool) error
	AddScopeSeed(u weburl.URL) error // takes in scope what a seed has redirected to
	Pause(on bool)
	Finish() // ends the run once nothing waits
}

// Figures are what an engine has done and has to do.
type Figures struct {
	control.Work
	Bytes int64 // in this folder, all runs
	Peers int   // nodes that are connected
	stats.Condition
}

// Config is what a Node is made of.
type Config struct {
	Messenger    bus.Messenger
	Overlay      overlay.Config // with Self
	Mesh         mesh.Config    // what is called or told of this node, or read from disk, is New's to set
	Known        []overlay.Contact
	WaitForPeers bool // where nobody is Known, for Join, rather than being the first node of all
	// Contact is a node with its addresses, Learn is told of those of other nodes; nil where nodes are found by name
	Contact func(strategy.Node) overlay.Contact
	Learn   func(overlay.Contact)

	// Dir is where the node keeps what it knows of the crawl beside URLs. "": it keeps nothing, and the engine runs as
	// it likes, whatever the record says.
	Disk vfs.FS
	Dir  string

	Router  *Router
	History *history.DB
	Places  Places
	// Read calls f with each link of a batch that an engine's outbox has written, its item's key, and its host, or the
	// slice of it that is a host of its own for all who fetch; ErrSettingsUnknown: it cannot say yet
	Read func(data []byte, f func(host, key string, link []byte)) error

	// Slice is the host of a URL, or the slice of it, as Read has it. It is called once the crawl was started.
	Slice func(url string) string

	// CountBlocked counts what rules would leave out of what waits here, in JSON, within a few seconds. It may be nil.
	Blocked func(ctx context.Context, rules []string) ([]byte, error)

	// What is called by the node's loop and must not wait. Any of it may be nil.
	Load    func() mesh.Load                         // what the engine has to do, since it was asked last
	Figures func() Figures                           // of the engine
	Limit   func(settings map[string][]string) int64 // how many pages are enough; 0: no number is
	Changed func()                                   // the crawl's record is another
	Ended   func(mesh.Ended)                         // all nodes have nothing to do
	// ApplySettings is told of the crawl's settings when they have changed, one after the other, and may wait. It may be nil.
	ApplySettings func(settings map[string][]string)
	Version       string // of this kumo
	Address       string // where it can be asked; may be empty
	Log           *slog.Logger
}

// A Node is a node of a crawl. It is used for one Run. Its fields are set by New, and do not change: each part guards
// its own state. Its methods may be called by any goroutine.
type Node struct {
	cfg     Config
	self    strategy.Node
	inbox   *inbox
	tasks   *tasks
	engine  *engineRef
	msgs    *messages
	asker   *requester
	survey  *survey
	blocked *blockCounter
	links   *linkExchange
	risks   *atRisk
	history *historyWorker
	store   *store
	watcher *recordWatcher
	queries *queries
	loop    *loop
	server  *control.Server
}

// An engineRef is the node's engine, once there is one. Any goroutine may use it.
type engineRef struct{ p atomic.Pointer[Engine] }

// get is nil before Attach.
func (r *engineRef) get() Engine {
	if e := r.p.Load(); e != nil {
		return *e
	}
	return nil
}

// New makes a node. It becomes a part of the crawl, and remembers what others have found, before it has an engine: see
// Attach.
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
	n.blocked = &blockCounter{
		self:    n.self,
		blocked: cfg.Blocked,
		asker:   n.asker,
		msgs:    n.msgs,
		tasks:   n.tasks,
		log:     cfg.Log,
	}
	n.risks = &atRisk{risks, cfg.Places, n.engine, n.inbox, n.tasks, cfg.Log}
	n.links = &linkExchange{n.self, cfg.Read, n.engine, n.msgs, n.inbox}
	l := &loop{cfg: &n.cfg, inbox: n.inbox, tasks: n.tasks, engine: n.engine, msgs: n.msgs, links: n.links,
		intake: &intake{engine: n.engine, inbox: n.inbox, tasks: n.tasks, risks: n.risks, log: cfg.Log}, risks: n.risks,
		history: n.history, store: n.store, kick: make(chan struct{}, 1)}
	l.alone.Store(true)
	n.queries = &queries{step: l.step, gathers: map[uint64]func(mesh.Tally){}, locates: map[uint64]func(mesh.Located){}}
	n.watcher = newRecordWatcher(l, n.queries, chunks, record)
	l.report = &reporter{self: n.self, version: cfg.Version, address: cfg.Address, figures: cfg.Figures, until: l.until,
		engine: n.engine, msgs: n.msgs, history: n.history, watcher: n.watcher}
	l.queries, l.watcher, n.loop = n.queries, n.watcher, l
	n.server = control.NewServer(n.self, n, func(to strategy.Node, data []byte) {
		n.msgs.send(to, data[0], data[1:])
	}, cfg.Log)
	m := cfg.Mesh
	m.HasPending = func(host string) bool {
		e := n.engine.get()
		return e != nil && e.HasWork(host)
	}
	m.Status = mesh.StatusConfig{Engine: l.report.isIdle, Figures: l.report.sums, Report: l.report.json}
	if cfg.Figures != nil {
		m.Status.Pages = func() int64 { return cfg.Figures().Pages }
	}
	m.ReadChunk = n.store.chunk
	m.Earlier = mesh.Earlier{MetOthers: len(cfg.Known) > 0, Counts: n.store.counts(cfg.Log), Record: record, Risks: lists}
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

// Attach gives the node its engine, once, before the engine's Run: hosts become its own to fetch. What an earlier
// process has left in the engine is given up; what of it is not done comes back.
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
		return fmt.Errorf("read which hosts wait: %w", err)
	}
	if !n.engine.p.CompareAndSwap(nil, &e) {
		return errors.New("a node has one engine")
	}
	n.inbox.send(held...)
	n.inbox.post(func() { n.watcher.dirty = true })
	return nil
}

// Key is where the records of a host belong, of a node's history.
func Key(host string) xor.ID { return xor.Of("backup", host) }

// Run is a node's life, beside its engine's Run. It returns nil when the crawl is done, ErrStopped, ErrLeft, ErrAlone,
// the error that ended it, or ctx's cause.
func (n *Node) Run(ctx context.Context) error {
	n.tasks.begin(ctx)
	l := n.loop
	defer close(n.inbox.done)
	defer n.tasks.all.Wait()
	defer n.tasks.stop(nil)
	defer n.cfg.Router.end() // no request is begun any more
	l.wake = time.NewTimer(time.Hour)
	defer l.wake.Stop()
	n.tasks.run("receive messages", n.receive)
	n.tasks.run("remember URLs", func(ctx context.Context) error {
		return n.history.run(ctx, func(all ...mesh.Event) { sendAll(n.inbox, all) })
	})
	n.tasks.run("keep the history", n.maintainHistory)
	n.tasks.run("keep lists of pages at risk", n.risks.lists.run)
	if n.cfg.Places.Has != nil {
		n.tasks.run("look what is in the place", n.risks.pollPlace)
	}
	if n.cfg.ApplySettings != nil {
		n.tasks.run("go by the crawl's settings", n.watcher.applySettings)
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
	countsInterval = time.Minute // after which counts of pages are written
	checkInterval  = time.Second // after which the follower looks, whatever it was told: another node may be gone
)

func (n *Node) maintainHistory(ctx context.Context) error {
	for range wait.Every(ctx, time.Second) {
		if err := n.cfg.History.Maintain(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AtRisk records pages that the engine has fetched, and whose records are on this disk alone. It returns when this
// node's keepers know of them.
func (n *Node) AtRisk(ctx context.Context, pages []AtRisk) error { return n.risks.add(ctx, pages) }

// receive passes messages to the parts that they are for, until ctx ends.
func (n *Node) receive(ctx context.Context) error {
	err := n.cfg.Messenger.Receive(ctx, func(from strategy.Node, data []byte) {
		if len(data) == 0 || n.inbox.full() || n.store.full() {
			return // who sent it sends it again
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
		case kindCountRequest:
			n.blocked.answer(from, data)
		case kindKnownReply, kindCountReply:
			n.asker.handleReply(from, kind, data)
		case control.KindRequest:
			n.tasks.run("answer a question", func(ctx context.Context) error {
				n.server.Handle(ctx, from, data)
				return nil
			})
		default: // a newer kumo's
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Finished is told by the engine of URLs, by their items' keys, that are fetched, or given up, with all that they have
// brought claimed.
func (n *Node) Finished(host string, keys []string) {
	f := mesh.Finished{Host: host, Hashes: make([]mesh.Hash, len(keys))}
	for i, key := range keys {
		f.Hashes[i] = mesh.Hash(history.HashOf(key))
	}
	n.inbox.send(f)
}

// NewScopeSeed is told by the engine where a seed redirects to: all nodes are to have it in scope.
func (n *Node) NewScopeSeed(url string) { n.watcher.addScopeSeed(url) }

// Lost says that a node cannot be reached.
func (n *Node) Lost(node strategy.Node) { n.inbox.send(peer.Lost{Node: string(node)}) }

// Join asks to become part of the crawl by way of other nodes than before; without any, to go on alone until others
// come.
func (n *Node) Join(contacts ...overlay.Contact) { n.inbox.send(peer.Join{Contacts: contacts}) }
