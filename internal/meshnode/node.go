// Package meshnode is an engine as a node of a crawl without a centre: it carries out what a [peer.Peer] wants done,
// over a messenger and a history, and takes the engine's links to those who remember them.
//
// One goroutine, Run's loop, tells the peer what happened and has its actions carried out. Nothing in it waits: what
// takes time is done beside it, and comes back as an event.
package meshnode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"kumo/internal/bus"
	"kumo/internal/history"
	"kumo/internal/member"
	"kumo/internal/member/mesh"
	"kumo/internal/member/peer"
	"kumo/internal/overlay"
	"kumo/internal/strategy"
	"kumo/internal/xor"
)

// ErrLeft says that the node has given all it had to others, as it was asked to.
var ErrLeft = errors.New("the node has left the crawl")

// An Engine is what a node needs of a crawl.Engine whose links are claimed. Its methods may be called by many
// goroutines at once.
type Engine interface {
	// TakeDispatched takes links in that this node is to fetch, a [member.Batch]'s data, and says which are done. After an
	// error none is taken, or nobody knows.
	TakeDispatched(ctx context.Context, data []byte) (done []bool, err error)
	// ReleaseHosts gives hosts up: see crawl.Engine.
	ReleaseHosts(ctx context.Context, hosts []string) error
	// HeldHosts calls f with each host of which something waits. It is called before the engine runs.
	HeldHosts(f func(host string) error) error
	Waits(host string) bool // something of a host waits, is under way, or is not said yet
	Idle() bool             // nothing waits, is under way, or is bound for others
	Received() int64        // how often something was brought to it
	// Queues are hosts where URLs wait, those with the longest queues first, so many at most.
	Queues(ctx context.Context, most int) ([]strategy.Queue, error)

	Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch
	Answered(from strategy.Node, batch uint64, refused []int, now time.Time)
	Outbox() (links int, bytes int64)
	Wanted() []string
	Wake(hosts []string)
}

// Config is what a Node is made of.
type Config struct {
	Messenger bus.Messenger
	Overlay   overlay.Config // with Self
	Mesh      mesh.Config    // Waits, Engine and Met are the node's to set, and Process if it is 0
	Known     []overlay.Contact
	// Contact is a node with its addresses, Learn is told of those of other nodes; nil where nodes are found by name
	Contact func(strategy.Node) overlay.Contact
	Learn   func(overlay.Contact)

	Engine  Engine
	Router  *Router
	History *history.DB
	// Read calls f with each link of a batch that an engine's outbox has written
	Read func(data []byte, f func(host, url string, link []byte)) error
	Load func() mesh.Load // what the engine has to do, since it was asked last; may be nil
	// called, not by many at once and not for long, with the crawl's record when it is another, and with word that all
	// nodes have nothing to do under a version of it; may be nil
	Changed func(mesh.RecordVersion)
	Ended   func(mesh.Ended)
	Log     *slog.Logger
}

// A Node is a node of a crawl. It is used for one Run.
type Node struct {
	cfg    Config
	self   strategy.Node
	log    *slog.Logger
	peer   *peer.Peer
	memory *memory

	mu     sync.Mutex // guards events
	events []peer.Event
	came   chan struct{} // has room for one word that there are some
	kick   chan struct{} // the pump's

	wake    *time.Timer
	left    bool // the peer has
	stop    context.CancelCauseFunc
	ctx     context.Context
	tasks   sync.WaitGroup
	gathers map[uint64]chan mesh.Tally // the loop's
	tag     uint64
	calls   []func()    // guarded by mu, done by the loop
	takes   []mesh.Take // the loop's, as is taking
	taking  int
}

// New makes a node. The engine does not run yet.
func New(cfg Config) (*Node, error) {
	n := &Node{cfg: cfg, self: strategy.Node(cfg.Overlay.Self.Node), log: cfg.Log, came: make(chan struct{}, 1),
		kick: make(chan struct{}, 1), gathers: map[uint64]chan mesh.Tally{}}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if n.cfg.Contact == nil {
		n.cfg.Contact = func(n strategy.Node) overlay.Contact { return overlay.Contact{Node: string(n)} }
	}
	if n.cfg.Learn == nil {
		n.cfg.Learn = func(overlay.Contact) {}
	}
	m := cfg.Mesh
	m.Waits, m.Met = cfg.Engine.Waits, len(cfg.Known) > 0
	m.Process = cmp.Or(m.Process, rand.Uint64())
	m.Engine = func() (bool, uint64) {
		return cfg.Engine.Idle() && n.memory.idle(), uint64(cfg.Engine.Received())
	}
	n.peer = peer.New(peer.Config{Overlay: cfg.Overlay, Mesh: m})
	n.memory = newMemory(cfg.History, Key, time.Now)
	for _, host := range cfg.History.OpenHosts() {
		n.events = append(n.events, mesh.Opened{Host: host, Open: cfg.History.Open(host)})
	}
	err := cfg.Engine.HeldHosts(func(host string) error {
		n.events = append(n.events, mesh.Holding{Host: host})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read which hosts wait: %w", err)
	}
	n.events = append(n.events, peer.Join{Contacts: cfg.Known})
	return n, nil
}

// Key is where the records of a host belong, of a node's history.
func Key(host string) xor.ID { return xor.Of("backup", host) }

// Run is a node's life, beside its engine's Run. It returns ErrLeft, the error that ended it, or ctx's cause.
func (n *Node) Run(ctx context.Context) error {
	n.ctx, n.stop = context.WithCancelCause(ctx)
	defer n.tasks.Wait()
	defer n.stop(nil)
	defer n.cfg.Router.publish(nil) // no request is begun any more
	n.wake = time.NewTimer(time.Hour)
	defer n.wake.Stop()
	n.run("receive messages", n.receive)
	n.run("remember URLs", func(ctx context.Context) error {
		return n.memory.run(ctx, func(all ...mesh.Event) { tellAll(n, all) })
	})
	n.run("keep the history", n.tend)
	n.carryOut(n.peer.Start(time.Now(), nil))
	n.cfg.Router.publish(n.peer.Machine().View())
	return n.loop()
}

// run does f beside the loop; its error ends the node.
func (n *Node) run(what string, f func(context.Context) error) {
	n.tasks.Go(func() {
		if err := f(n.ctx); err != nil && n.ctx.Err() == nil {
			n.stop(fmt.Errorf("%s: %w", what, err))
		}
	})
}

// tell tells the peer something, after all it has been told.
func (n *Node) tell(e ...peer.Event) { tellAll(n, e) }

func tellAll[E any](n *Node, all []E) {
	n.mu.Lock()
	for _, e := range all {
		n.events = append(n.events, e)
	}
	n.mu.Unlock()
	word(n.came)
}

// maxEvents is how many events may wait while messages are taken in.
const maxEvents = 1 << 14

// full reports whether more has come than the loop gets done.
func (n *Node) full() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.events) > maxEvents
}

// call has f done by the loop.
func (n *Node) call(f func()) {
	n.mu.Lock()
	n.calls = append(n.calls, f)
	n.mu.Unlock()
	word(n.came)
}

func word(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

const (
	pumpEvery = 100 * time.Millisecond
	loadEvery = 10 * time.Second
)

func (n *Node) loop() error {
	pump, load := time.NewTicker(pumpEvery), time.NewTicker(loadEvery)
	defer pump.Stop()
	defer load.Stop()
	word(n.came)
	for {
		select {
		case <-n.ctx.Done():
			return context.Cause(n.ctx)
		case <-n.came:
			n.step()
		case <-n.wake.C:
			n.tell(peer.Tick{})
		case <-load.C:
			if n.cfg.Load != nil {
				n.tell(n.cfg.Load())
			}
		case <-pump.C:
			n.pump()
		case <-n.kick:
			n.pump()
		}
	}
}

// step tells the peer what is new.
func (n *Node) step() {
	n.mu.Lock()
	events, calls := n.events, n.calls
	n.events, n.calls = nil, nil
	n.mu.Unlock()
	for _, f := range calls {
		f()
	}
	n.carryOut(n.peer.Step(time.Now(), events, nil))
}

// carryOut has done what the peer wants.
func (n *Node) carryOut(actions []peer.Action) {
	var release []string
	for _, a := range actions {
		switch a := a.(type) {
		case peer.Send:
			n.cfg.Learn(a.To)
			n.send(strategy.Node(a.To.Node), kindPeer, a.Data)
		case peer.Wake:
			n.wake.Reset(time.Until(a.At))
		case mesh.Record, mesh.Read, mesh.Sweep, mesh.Drop:
			n.memory.do(a.(mesh.Action))
		case mesh.Take:
			n.takes = append(n.takes, a)
			n.takeNext()
		case mesh.Release:
			release = append(release, a.Host)
		case mesh.Answer:
			n.answer(a)
		case mesh.Publish:
			n.cfg.Router.publish(a.View)
		case mesh.Routed:
			n.cfg.Engine.Wake(a.Hosts)
			word(n.kick)
		case mesh.Spare:
			n.run("find hosts to spare", func(ctx context.Context) error { n.spare(ctx, a); return nil })
		case mesh.Changed:
			if n.cfg.Changed != nil {
				n.cfg.Changed(a.Record)
			}
		case mesh.Ended:
			if n.cfg.Ended != nil {
				n.cfg.Ended(a)
			}
		case mesh.Gathered:
			if c := n.gathers[a.Tag]; c != nil {
				delete(n.gathers, a.Tag)
				c <- a.Tally
			}
		case mesh.Left:
			n.left = true
		default:
			n.stop(fmt.Errorf("a node is to do %T, and cannot", a))
		}
	}
	if len(release) > 0 {
		n.run("give hosts up", func(ctx context.Context) error { return n.release(ctx, release) })
	}
}

// release gives hosts up. What is Finished of them is told before.
func (n *Node) release(ctx context.Context, hosts []string) error {
	if err := n.cfg.Engine.ReleaseHosts(ctx, hosts); err != nil {
		return err
	}
	all := make([]peer.Event, len(hosts))
	for i, h := range hosts {
		all[i] = mesh.Released{Host: h}
	}
	n.tell(all...)
	return nil
}

// maxTaking is how many times at once links are given to the engine, which may have no room for them for long.
const maxTaking = 8

// takeNext gives the engine links that wait, as far as that.
func (n *Node) takeNext() {
	for n.taking < maxTaking && len(n.takes) > 0 {
		a := n.takes[0]
		n.takes = n.takes[1:]
		n.taking++
		n.run("take links", func(ctx context.Context) error {
			n.takeDispatched(ctx, a)
			n.call(func() {
				n.taking--
				n.takeNext()
			})
			return nil
		})
	}
}

// takeDispatched gives the engine links.
func (n *Node) takeDispatched(ctx context.Context, a mesh.Take) {
	data := []byte{member.LinksVersion}
	for _, k := range a.Links {
		data = member.AppendLink(data, k.Item)
	}
	done, err := n.cfg.Engine.TakeDispatched(ctx, data)
	if err != nil && ctx.Err() == nil {
		n.log.Debug("links are not taken for now", "host", a.Host, "err", err)
	}
	n.tell(mesh.Taken{ID: a.ID, Done: done, Refused: err != nil})
}

// mostSpared is how many hosts are looked at for those to spare.
const mostSpared = 256

// spare tells which hosts have the longest queues. Where they cannot be read, none can be spared.
func (n *Node) spare(ctx context.Context, a mesh.Spare) {
	queues, err := n.cfg.Engine.Queues(ctx, mostSpared)
	if err != nil {
		n.log.Debug("no host is spared", "err", err)
	}
	s := mesh.Spared{To: a.To}
	for _, q := range queues {
		if left := a.URLs - int64(q.Waiting); left >= 0 {
			s.Hosts = append(s.Hosts, q.Host)
			a.URLs = left
		}
	}
	n.tell(s)
}

// tend looks after the history.
func (n *Node) tend(ctx context.Context) error {
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return nil
		case <-tick.C:
			if err := n.cfg.History.Tend(ctx); err != nil {
				return err
			}
		}
	}
}

// Finished is told by the engine of URLs that are fetched, or given up, with all that they have brought claimed.
func (n *Node) Finished(host string, urls []string) {
	f := mesh.Finished{Host: host, Hashes: make([]mesh.Hash, len(urls))}
	for i, u := range urls {
		f.Hashes[i] = mesh.Hash(history.HashOf(u))
	}
	n.tell(f)
}

// Leave asks the node to give all it has to others. Run returns ErrLeft then.
func (n *Node) Leave() { n.tell(mesh.Leave{}) }

// Lost says that a node cannot be reached.
func (n *Node) Lost(node strategy.Node) { n.tell(peer.Lost{Node: string(node)}) }

// Join asks to become part of the crawl by way of other nodes than before.
func (n *Node) Join(contacts ...overlay.Contact) { n.tell(peer.Join{Contacts: contacts}) }

// SetRecord makes a new version of the crawl's record.
func (n *Node) SetRecord(data []byte) { n.tell(mesh.Change{Data: data}) }

// Gather adds up what all nodes say of themselves: it takes a second or two, more where nodes have just died.
func (n *Node) Gather(ctx context.Context) (mesh.Tally, error) {
	c := make(chan mesh.Tally, 1)
	n.call(func() {
		n.tag++
		n.gathers[n.tag] = c
		n.tell(mesh.Gather{Tag: n.tag})
	})
	select {
	case t := <-c:
		return t, nil
	case <-ctx.Done():
		return mesh.Tally{}, ctx.Err()
	}
}
