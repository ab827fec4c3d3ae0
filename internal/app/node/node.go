// Package node runs an engine as a member of a cluster. It executes a member's actions over a bus, sends links to the
// nodes that own their hosts, and follows the crawl's record in the registry.
//
// One goroutine, Run's loop, passes events to the member and starts its actions. The loop never blocks: slow operations
// run in other goroutines, in order for each transfer, and return as events.
//
// # Registry keys
//
//	table, lease/NODE    membership data of package member
//	moves/NODE           hosts of the node that are moving or about to move; also of package member
//	waiting/NODE         the node waits for the start of the crawl, or is about to join
//	drain/NODE           a user has asked the node to leave
//	given                data that a user supplied for the strategy with the crawl
//	budget               the division of the page limit among the nodes
//	crawl                the crawl's record: its settings, and whether it runs
//	seeds/N              seeds, in chunks; seeds/N/taken once the responsible node has stored them durably
//	roots/N              redirect targets of seeds, so that all nodes include them in the scope
//	results/NODE         the node's report, also if the node is gone
//	journal/NODE         a log: the node's replicated journal
package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/wait"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/strategy"
)

var (
	// ErrLost means that the other nodes declared this node dead and took over its data. Its state is useless, but the
	// process may restart as another node.
	ErrLost = errors.New("this node was declared dead; other nodes have taken over its data")
	// ErrLeft means that the node has transferred all its data to others, on request.
	ErrLeft = errors.New("the node has left the cluster")
	// ErrStopped means that the crawl was stopped on all nodes. It can be resumed.
	ErrStopped = errors.New("the crawl was stopped")
)

// EndReason returns the reason for the end of a node's run in a few words.
func EndReason(err error) string {
	if limit, is := errors.AsType[*desired.LimitError](err); is {
		return "stopped at its " + strings.ReplaceAll(limit.Why, "-", " ")
	}
	switch {
	case errors.Is(err, ErrStopped):
		return "stopped"
	case errors.Is(err, ErrLeft):
		return "left"
	case errors.Is(err, ErrLost):
		return "declared dead by the other nodes"
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return "interrupted"
	}
	return "failed"
}

// Config configures a Node.
type Config struct {
	Crawl    string // its name
	Identity Identity
	Member   member.Member     // not started yet
	Strategy strategy.Strategy // if it decides host by host; nil for a Placer
	Timing   member.Timing

	Bus         bus.Bus
	Engine      Engine
	Router      *Router
	FailedNodes driver.FailedNodes
	SaveJoined  func() error   // durably records that the identity is a member from now on
	Figures     func() Figures // reported in the lease; may be nil
	Work        func() Work    // completed work, for the strategy; called by the loop, must not block; may be nil
	// IsKnown reports whether the node owns a URL's host, and whether it knows the URL; may be nil.
	IsKnown func(url string) (mine, known bool, err error)
	// PendingLinks returns the number of links that wait until the URL's host or slice has an owner; may be nil.
	PendingLinks func(url string) int
	// Query answers a query about this node's part of the crawl within a few seconds, both in JSON; may be nil.
	Query func(ctx context.Context, query json.RawMessage) ([]byte, error)
	// ApplySettings is called with the settings of the crawl's record at the start and after each change; may be nil.
	ApplySettings func(settings map[string][]string)
	// OnEnd is called when the node ends, before it waits for running tasks; may be nil.
	OnEnd   func()
	Version string // of kumo
	Address string // of this node's API; may be empty
	Browser string // program that renders pages; "" if the node has none
	Server  string // address of this process's server; "" if it runs none
	// Drain is called when a user asks this node to leave. It must not block; may be nil.
	Drain func()
	// LeaseExpired is called by the loop when the lease was not renewed in time. It must not block; may be nil.
	LeaseExpired func()
	Log          *slog.Logger
}

// A Node is a member of a cluster. It is used for one Run.
type Node struct {
	cfg  Config
	self strategy.Node
	log  *slog.Logger

	calls       chan func()   // run by the loop in order, before the driver's next step
	wake        *time.Timer   // the driver's
	leaseTimer  *time.Timer   // fires at the lease's end
	leave       chan struct{} // closed by Leave
	kick        chan struct{} // triggers the pump
	once        sync.Once
	stop        context.CancelCauseFunc
	tasks       *tasks
	watch       *watches
	record      *recordWatcher
	driver      *driver.Driver
	requestRate Rate
	facts       atomic.Pointer[Facts]  // of the last report; nil: none yet, or the strategy has none
	answering   atomic.Bool            // for another node or a client
	heartbeat   wait.Heartbeat         // of the loop
	refused     map[strategy.Node]bool // senders of rejected messages; belongs to the receiving goroutine
}

// New creates a node.
func New(cfg Config) *Node {
	n := &Node{cfg: cfg, self: cfg.Identity.Node(), log: cfg.Log, calls: make(chan func(), maxCalls),
		leave: make(chan struct{}), kick: make(chan struct{}, 1), refused: map[strategy.Node]bool{}}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if n.cfg.OnEnd == nil {
		n.cfg.OnEnd = func() {}
	}
	if n.cfg.Figures == nil {
		n.cfg.Figures = func() Figures { return Figures{} }
	}
	if n.cfg.Work == nil {
		n.cfg.Work = func() Work { return Work{} }
	}
	n.watch, n.record = &watches{n: n, active: map[string]context.CancelFunc{}}, newRecordWatcher(n)
	n.driver = driver.New(driver.Config{Self: n.self, Member: cfg.Member, Strategy: cfg.Strategy, Timing: cfg.Timing,
		Runtime: runtime{n}, Engine: cfg.Engine, Failed: cfg.FailedNodes, Record: n.record, Log: n.log, Seed: rand.Uint64()})
	return n
}

// NewScopeSeed shares the redirect target of a seed, which all nodes add to their scope. It is called by the engine and
// does not block.
func (n *Node) NewScopeSeed(url string) { n.record.addScopeSeed(url) }

// Leave starts the transfer of all data to other nodes. Run then returns ErrLeft.
func (n *Node) Leave() { n.once.Do(func() { close(n.leave) }) }

// Run runs the member while the engine's Run, which has started, runs concurrently. The engine is paused until the
// crawl's record allows it to run. Run returns nil when the crawl is done, one of this package's errors, the first
// other error, or ctx's.
func (n *Node) Run(ctx context.Context) error {
	defer n.driver.Close()
	ctx, n.stop = context.WithCancelCause(ctx)
	n.tasks = &tasks{ctx: ctx}
	defer n.tasks.all.Wait()
	defer n.stop(nil)
	defer n.cfg.OnEnd()
	defer n.cfg.Router.publish(nil) // blocks new requests
	n.wake = time.NewTimer(time.Hour)
	defer n.wake.Stop()
	n.leaseTimer = time.NewTimer(time.Hour)
	defer n.leaseTimer.Stop()
	n.tasks.Go(n.receive)
	n.tasks.Go(n.pump)
	if n.cfg.Strategy != nil {
		n.tasks.Go(n.watchJoining)
		n.tasks.Go(n.watchStrategyData)
	}
	n.record.start()
	err := n.loop(ctx)
	if n.record.endErr != nil { // it takes precedence over later errors
		err = n.record.endErr
	}
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// Silence returns the time since the loop last came around, normally less than a second; 0 if it does not run.
func (n *Node) Silence() time.Duration { return n.heartbeat.Silence() }

// members returns the number of members, at least 1.
func (n *Node) members() int {
	return max(len(n.cfg.Member.Members().Members), 1)
}

func (n *Node) fail(err error) {
	if err != nil {
		n.stop(err)
	}
}

// maxCalls is the capacity of Node.calls.
const maxCalls = 256

func (n *Node) loop(ctx context.Context) error {
	n.driver.Start(ctx)
	beat := time.NewTicker(n.cfg.Timing.Beat / 2)
	defer beat.Stop()
	end := time.NewTicker(n.cfg.Timing.Beat / 20)
	defer end.Stop()
	leave := n.leave
	shortQueue := false // the strategy may need more frequent load reports
	short := time.NewTicker(n.cfg.Timing.Beat / 5)
	defer short.Stop()
	defer n.heartbeat.Stop()
	for {
		n.heartbeat.Beat()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case f := <-n.calls:
			f()
			for range len(n.calls) {
				(<-n.calls)()
			}
		case <-n.wake.C:
		case <-n.leaseTimer.C:
			n.leaseExpired()
		case <-leave:
			leave = nil
			n.driver.AddEvent(member.Leave{})
		case <-beat.C:
			n.driver.AddEvent(member.Report{Data: n.report()})
			e := n.load()
			shortQueue = e.HasShortQueue(n.cfg.Timing.Beat)
			n.driver.AddStrategyEvent(e)
		case <-short.C:
			if shortQueue {
				n.driver.AddStrategyEvent(n.load())
			}
		case <-end.C:
			n.driver.DetectEnd()
		}
		n.driver.Step()
	}
}

func (n *Node) load() strategy.Load {
	f, w := n.cfg.Figures(), n.cfg.Work()
	return strategy.Load{Node: n.self, Hosts: f.Hosts, Pending: int64(f.Waiting),
		Fetching: f.InFlight + int(w.Pending), Rate: f.Rate, Busy: f.Busy, Paused: n.record.record.State != desired.Running,
		Pages: w.Pages, Enqueued: w.NewURLs, Bytes: w.Bytes, CPU: w.CPU, Machine: w.Machine}
}

// leaseExpired aborts requests if the lease was not renewed: other nodes only wait for its end and a margin, not for
// slow servers.
func (n *Node) leaseExpired() {
	if until := n.cfg.Router.Until(); !wait.IsAfter(until, time.Now()) {
		n.log.Warn("the lease has expired and could not be renewed: nothing is fetched until it is")
		n.cfg.Engine.Interrupt()
		if n.cfg.LeaseExpired != nil {
			n.cfg.LeaseExpired()
		}
	}
}

// postEvent passes an event to the member from another goroutine than the loop.
func (n *Node) postEvent(ctx context.Context, e member.Event) {
	n.call(ctx, func() { n.driver.AddEvent(e) })
}

// call runs f in the loop. Only other goroutines may call it.
func (n *Node) call(ctx context.Context, f func()) {
	select {
	case n.calls <- f:
	case <-ctx.Done():
	}
}

func (n *Node) receive(ctx context.Context) {
	err := n.cfg.Bus.Receive(ctx, func(from strategy.Node, data []byte) { n.handleMessage(ctx, from, data) })
	if ctx.Err() == nil {
		n.fail(fmt.Errorf("receive messages: %w", err))
	}
}

// An Engine is the part of a running crawl.Engine that a node uses. Its methods are called concurrently.
type Engine interface {
	driver.Engine
	// AddSeeds adds all seeds to the scope, and enqueues those for whose hosts take is true. It returns when this is
	// durable.
	AddSeeds(ctx context.Context, seeds []weburl.URL, take func(host string) bool) error
	AddScopeSeed(u weburl.URL) error // adds the redirect target of a seed to the scope
	Pause(on bool)
	Interrupt()  // aborts all requests in progress
	Share(n int) // sets the number of crawling nodes
	Finish()     // ends the run when no URLs are pending
}
