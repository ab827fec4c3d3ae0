// Package driver executes the actions of a member and a strategy, and passes events between them.
//
// It moves hosts between nodes, exchanges links, and detects the end of the crawl. It uses no bus, disk, clock or
// goroutines of its own. kumo/internal/app/node supplies the real ones, and kumo/internal/lab/sim a model of each in
// virtual time. So the simulator tests this code and not a copy.
//
// Operations that take time are written as blocking functions. A [Runtime] runs them concurrently: as goroutines, or
// one at a time in virtual time.
//
// The package excludes everything that the simulator does not model. That is the encoding and versions of messages,
// reports of leases, pauses and stops of a crawl, chunks of seeds, joining nodes, and the timeouts of a bus.
package driver

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// A Runtime is the environment of a Driver. Methods without a ctx do not block.
type Runtime interface {
	Now() time.Time
	// Go runs f concurrently. The ctx of f ends with the node.
	Go(f func(ctx context.Context))
	// Pause waits for d, and reports whether ctx is still alive.
	Pause(ctx context.Context, d time.Duration) bool
	// Call runs f where Step is called, before the next Step.
	Call(ctx context.Context, f func())
	// Wake requests a call of Step at a time. It replaces the previous Wake.
	Wake(at time.Time)
	// Send sends a message, once. It may be lost.
	Send(to strategy.Node, kind Kind, data []byte)
	// Do executes the actions that are not the Driver's: Watch, Write, RecordJoin, Publish, Lost, Left, Failed.
	Do(a member.Action)
	// Leased reports whether this node may act now, by View.Until.
	Leased() bool
	// Fail ends the node.
	Fail(err error)

	// Append adds an entry after the entry with number after to the log that the strategies of all nodes share. It
	// returns member.ErrStale if another entry is the last one.
	Append(ctx context.Context, data []byte, after uint64) (number uint64, err error)
	// Read calls f with the log's entries after a number.
	Read(ctx context.Context, after uint64, f func(number uint64, data []byte) error) error
	// Trim drops the log's entries before a number.
	Trim(ctx context.Context, before uint64) error
}

// Config configures a Driver.
type Config struct {
	Self     strategy.Node
	Member   member.Member
	Strategy strategy.Strategy // nil if it is a Placer
	Timing   member.Timing
	Runtime  Runtime
	Engine   Engine
	Failed   FailedNodes
	Record   Record
	Log      *slog.Logger
	Seed     uint64 // of random choices; differs for each process, which it identifies
}

// A Driver drives one member, and a strategy that is no Placer. It guards the pending events of both, and their timers;
// its parts execute actions. Its methods are called by one goroutine, or within functions passed to Call, unless they
// say otherwise.
type Driver struct {
	cfg Config

	events          []member.Event   // pending for the member
	strategyEvents  []strategy.Event // pending for the strategy
	spareEvents     []member.Event   // spare slice for events
	actions         []member.Action
	strategyActions []strategy.Action
	wakeAt          time.Time            // time of the member's last Wake; zero: none
	timers          map[uint64]time.Time // of the strategy
	armed           time.Time            // when Step will be called
	viewChanged     bool                 // the strategy has another view: deferred links may have owners
	surveyDue       bool                 // the strategy has requested a survey
	ended           bool                 // the member has ended

	lanes     lanes
	transfers *transfers
	links     links
	end       termination
}

// New returns a driver.
func New(cfg Config) *Driver {
	d := &Driver{cfg: cfg, timers: map[uint64]time.Time{}, lanes: lanes{runtime: cfg.Runtime}}
	d.transfers = newTransfers(&d.cfg, &d.lanes, d.postEvent)
	d.links.cfg = &d.cfg
	d.end = termination{cfg: &d.cfg, links: &d.links}
	return d
}

// Start starts the member. ctx ends with the node.
func (d *Driver) Start(ctx context.Context) {
	d.transfers.ctx = ctx
	for _, a := range d.cfg.Member.Start(nil) {
		d.execute(a)
	}
}

// AddEvent adds an event for the member's next step.
func (d *Driver) AddEvent(e member.Event) { d.events = append(d.events, e) }

// AddStrategyEvent adds an event for the strategy's next step.
func (d *Driver) AddStrategyEvent(e strategy.Event) {
	if d.cfg.Strategy != nil {
		d.strategyEvents = append(d.strategyEvents, e)
	}
}

// postEvent adds an event for the member. It may be called from any goroutine except the caller of Step.
func (d *Driver) postEvent(ctx context.Context, e member.Event) {
	d.cfg.Runtime.Call(ctx, func() { d.AddEvent(e) })
}

func (d *Driver) postStrategyEvent(ctx context.Context, e strategy.Event) {
	d.cfg.Runtime.Call(ctx, func() { d.AddStrategyEvent(e) })
}

// Step passes pending events and due timers to the strategy and the member, and executes their actions, until neither
// has events left. The strategy comes first, so that it knows of all received hosts before the member can report them
// complete.
func (d *Driver) Step() {
	now := d.cfg.Runtime.Now()
	due := d.fireTimers(now)
	if !due && len(d.events)+len(d.strategyEvents) == 0 {
		return
	}
	for again := true; again && !d.ended; again = len(d.events) > 0 {
		d.stepStrategy(now)
		events := d.events
		d.events, d.spareEvents = d.spareEvents[:0], events
		d.actions = d.cfg.Member.Step(now, events, d.actions[:0])
		for _, a := range d.actions {
			d.execute(a)
		}
		d.reportMembers()
		d.stepStrategy(now)
	}
	d.arm()
}

// fireTimers reports whether a timer of the member or the strategy is due. It adds the strategy's due timers as events.
func (d *Driver) fireTimers(now time.Time) bool {
	due := func(at time.Time) bool { return !at.IsZero() && !at.After(now) }
	if !due(d.armed) {
		return false
	}
	d.armed = time.Time{}
	if due(d.wakeAt) {
		d.wakeAt = time.Time{}
	}
	for _, t := range slices.Sorted(maps.Keys(d.timers)) {
		if due(d.timers[t]) {
			delete(d.timers, t)
			d.AddStrategyEvent(strategy.Fired{Timer: t})
		}
	}
	return true
}

// arm requests a Step for the time of the first timer.
func (d *Driver) arm() {
	next := d.wakeAt
	for _, at := range d.timers {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if !next.Equal(d.armed) && !next.IsZero() && !d.ended {
		d.armed = next
		d.cfg.Runtime.Wake(next)
	}
}

// reportMembers reports a new member table to the strategy. It starts a survey that was requested once this node has
// handed over what it is transferring.
func (d *Driver) reportMembers() {
	if d.cfg.Strategy == nil || d.ended {
		return
	}
	if d.surveyDue && !d.cfg.Member.Exporting() {
		d.surveyDue = false
		d.InLane("survey", "survey the hosts of other owners", d.survey)
	}
	if e, news := d.cfg.Member.NewMembers(); news {
		d.AddStrategyEvent(e)
	}
}

// execute executes a member's action. It does not block.
func (d *Driver) execute(a member.Action) {
	switch a := a.(type) {
	case member.Send:
		d.cfg.Runtime.Send(a.To, KindMember, a.Data)
	case member.AllReceived:
		d.AddStrategyEvent(strategy.TransfersComplete(a))
	case member.Wake:
		d.wakeAt = a.At
	case member.Publish:
		d.cfg.Runtime.Do(a)
		if a.View.IsMember() {
			d.transfers.drainTarget.Store(nil)
		}
		if d.viewChanged {
			d.viewChanged = false
			d.cfg.Engine.RetryDeferred(nil)
		}
	case member.Lost, member.Left, member.Failed:
		d.ended = true
		d.cfg.Runtime.Do(a)
	case member.Watch, member.Write, member.RecordJoin:
		d.cfg.Runtime.Do(a)
	default:
		d.transfers.apply(a)
	}
}

// InLane runs f after the earlier functions of the same lane. An error of f ends the node.
func (d *Driver) InLane(lane, what string, f func(context.Context) error) {
	d.lanes.putRequired(lane, what, f)
}

// Pump sends the links that are due. owner returns the node that owns a host; false while no node can accept its links.
// One goroutine calls it repeatedly.
func (d *Driver) Pump(ctx context.Context, owner func(host string) (strategy.Node, bool)) {
	d.links.pump(owner, d.transfers.drainTarget.Load())
	if d.cfg.Strategy == nil {
		return
	}
	if hosts, links := d.cfg.Engine.Unrouted(); len(hosts) > 0 {
		d.postStrategyEvent(ctx, strategy.OwnersNeeded{Hosts: hosts, Links: links})
	}
}

// Batches returns the numbers of batches of links sent and received. Any goroutine may call it.
func (d *Driver) Batches() (sent, received int64) {
	return d.links.sent.Load(), d.links.received.Load()
}

// Leaving reports whether this node is leaving, so that another member receives its links. Any goroutine may call it.
func (d *Driver) Leaving() bool { return d.transfers.leaving() }

// Idle reports whether this node has no work that delays the crawl's end.
func (d *Driver) Idle() bool { return d.end.report().Idle }

// DetectEnd checks whether the crawl is done. The caller repeats it: the more often, the sooner the end is detected.
// After a reply from a node that is not idle, or in another epoch, the next check comes half a beat later.
func (d *Driver) DetectEnd() { d.end.detect() }

// Close closes open exports. The caller calls it when all functions passed to Go have returned.
func (d *Driver) Close() { d.transfers.close() }
