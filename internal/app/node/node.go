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
//	given                data that a user supplied for the strategy with the crawl
//	crawl                the crawl's record: its settings, and whether it runs
//	seeds/N              seeds, in chunks; seeds/N/taken once the responsible node has stored them durably
//	roots/N              redirect targets of seeds, so that all nodes include them in the scope
//	journal/NODE         a log: the node's replicated journal
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
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
	"kumo/internal/content/policy"
)

var (
	// ErrLost says that this node was given up for dead: others have what it held. Its state is worth nothing any more,
	// and its process may begin again as another node.
	ErrLost = errors.New("this node was given up for dead: what it held belongs to others now")
	// ErrLeft says that the node has handed over all it had, as it was asked to.
	ErrLeft = errors.New("the node has left the cluster")
	// ErrStopped says that the crawl was stopped for all nodes. It can go on later.
	ErrStopped = errors.New("the crawl was stopped")
)

// EndReason says in a few words how a node's run ended that its part of the crawl has ended.
func EndReason(err error) string {
	switch {
	case errors.Is(err, policy.ErrLimit):
		return "stopped at its limit"
	case errors.Is(err, ErrStopped):
		return "stopped"
	case errors.Is(err, ErrLeft):
		return "left"
	case errors.Is(err, ErrLost):
		return "given up by the other nodes"
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return "interrupted"
	}
	return "failed"
}

// Config is what a node is made of.
type Config struct {
	Crawl    string // its name
	Identity Identity
	Member   member.Member     // that has not begun
	Strategy strategy.Strategy // that decides host by host; nil if it is a Placer
	Timing   member.Timing

	Bus         bus.Bus
	Engine      Engine
	Router      *Router
	FailedNodes driver.FailedNodes
	SaveJoined  func() error   // notes durably that the identity is a member's from now on
	Figures     func() Figures // what the lease tells others of this node; may be nil
	Work        func() Work    // what the node has done, for its strategy; quick, and the loop's to call; may be nil
	// whether a host is this node's, and its URL was met before; may be nil
	IsKnown func(url string) (mine, known bool, err error)
	// how many links to a URL's host, or slice, wait until it is known whose that is; may be nil
	PendingLinks func(url string) int
	// counts what rules would leave out of what waits here, in JSON, within a few seconds; may be nil
	Blocked func(ctx context.Context, rules []string) ([]byte, error)
	// called with the settings of the crawl's record when it is told, and when they change; may be nil
	ApplySettings func(settings map[string][]string)
	// called when the node ends, before it waits for what is under way; may be nil
	OnEnd   func()
	Version string // of kumo
	Address string // where this node can be asked; may be empty
	Log     *slog.Logger
}

// A Node is a member of a cluster. It is used for one Run.
type Node struct {
	cfg  Config
	self strategy.Node
	log  *slog.Logger

	calls      chan func()   // done by the loop, in order, before the driver's next step
	wake       *time.Timer   // of the driver's
	leaseTimer *time.Timer   // for the lease's end
	leave      chan struct{} // closed when the node is to leave
	kick       chan struct{} // the pump's
	once       sync.Once
	stop       context.CancelCauseFunc
	tasks      *tasks
	watch      *watches
	record     *recordWatcher
	driver     *driver.Driver
	counting   atomic.Bool            // for who has asked
	refused    map[strategy.Node]bool // senders of messages; the receiving goroutine's
}

// New makes a node.
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

// NewScopeSeed has other nodes take in scope what a seed redirects to. It is the engine's to call, and quick.
func (n *Node) NewScopeSeed(url string) { n.record.addScopeSeed(url) }

// Leave asks the node to hand over all it has, and to leave. Run returns ErrLeft then.
func (n *Node) Leave() { n.once.Do(func() { close(n.leave) }) }

// Run is a member's life. The engine's Run goes on beside it, and has begun; it is paused until the crawl's record says
// otherwise. Run returns nil when the crawl is done, one of this package's errors, the error that ended it, or ctx's.
func (n *Node) Run(ctx context.Context) error {
	defer n.driver.Close()
	ctx, n.stop = context.WithCancelCause(ctx)
	n.tasks = &tasks{ctx: ctx}
	defer n.tasks.all.Wait()
	defer n.stop(nil)
	defer n.cfg.OnEnd()
	defer n.cfg.Router.publish(nil) // no request is begun any more
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
	if n.record.endErr != nil { // whatever has come in between
		err = n.record.endErr
	}
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// members is how many nodes there are; at least this one.
func (n *Node) members() int {
	return max(len(n.cfg.Member.Members().Members), 1)
}

func (n *Node) fail(err error) {
	if err != nil {
		n.stop(err)
	}
}

// maxCalls is how many calls are done between two steps of the driver, at most.
const maxCalls = 256

func (n *Node) loop(ctx context.Context) error {
	n.driver.Start(ctx)
	beat := time.NewTicker(n.cfg.Timing.Beat / 2)
	defer beat.Stop()
	end := time.NewTicker(n.cfg.Timing.Beat / 20)
	defer end.Stop()
	leave := n.leave
	for {
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
			n.driver.AddStrategyEvent(n.load())
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

// leaseExpired breaks off what is under way if the lease has not been renewed: others wait for its end and a margin, not for
// a slow server.
func (n *Node) leaseExpired() {
	if until := n.cfg.Router.Until(); !wait.IsAfter(until, time.Now()) {
		n.log.Warn("the lease has ended, and could not be renewed: nothing is fetched until it is")
		n.cfg.Engine.Interrupt()
	}
}

// postEvent tells the member something, by who is not the loop.
func (n *Node) postEvent(ctx context.Context, e member.Event) {
	n.call(ctx, func() { n.driver.AddEvent(e) })
}

// call has the loop do something. Who is not the loop may wait for it.
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

// An Engine is what a node needs of a crawl.Engine that runs. Its methods may be called by many goroutines at once.
type Engine interface {
	driver.Engine
	// AddSeeds takes seeds in: all into scope, and those to be fetched of whose hosts take is true. It returns when that
	// is durable.
	AddSeeds(ctx context.Context, seeds []weburl.URL, take func(host string) bool) error
	AddScopeSeed(u weburl.URL) error // takes in scope what a seed has redirected to
	Pause(on bool)
	Interrupt()  // breaks off all requests under way
	Share(n int) // so many nodes crawl
	Finish()     // ends the run once nothing waits
}
