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

// A Runtime is what a Driver runs on. Methods that have no ctx do not wait.
type Runtime interface {
	Now() time.Time
	// Go does f beside all else. Its ctx ends with the node.
	Go(f func(ctx context.Context))
	// Pause waits, and reports whether ctx still goes on.
	Pause(ctx context.Context, d time.Duration) bool
	// Call has f done where Step is called, before the next Step.
	Call(ctx context.Context, f func())
	// RetryDeferred asks for Step at a time; an earlier wish is replaced.
	Wake(at time.Time)
	// Send sends a message, once. It may be lost.
	Send(to strategy.Node, kind Kind, data []byte)
	// Do has those actions done that are the node's own: Watch, Write, Enter, Publish, Lost, Left, Failed.
	Do(a member.Action)
	// Leased reports whether this node may act now, as View.Until says.
	Leased() bool
	// Fail ends the node.
	Fail(err error)

	// Append adds an entry to the log that all nodes' strategies share, behind the one with the number after;
	// member.ErrStale if that is not the last.
	Append(ctx context.Context, data []byte, after uint64) (number uint64, err error)
	// Read calls f with the log's entries behind a number.
	Read(ctx context.Context, after uint64, f func(number uint64, data []byte) error) error
	// Trim drops the log's entries before a number.
	Trim(ctx context.Context, before uint64) error
}

// Config is what a Driver is made of.
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
	Seed     uint64 // of what is left to chance; another for each process, whose number it is
}

// A Driver drives one member, and a strategy if that is no Placer. It guards the events that they have not processed,
// and their timers; the parts execute actions. Its methods are called by one goroutine, or by functions of Call, unless
// they say otherwise.
type Driver struct {
	cfg Config

	events          []member.Event   // that the member has not been told
	strategyEvents  []strategy.Event // nor the strategy
	spareEvents     []member.Event   // room
	actions         []member.Action
	strategyActions []strategy.Action
	wakeAt          time.Time            // when the member wants to be woken; zero: it does not
	timers          map[uint64]time.Time // the strategy's
	armed           time.Time            // when Step is to be called
	viewChanged     bool                 // the strategy's view is another one: links that rest may have owners
	surveyDue       bool                 // a survey is wanted
	ended           bool                 // the member is

	lanes     lanes
	transfers *transfers
	links     links
	end       termination
}

// New makes a driver.
func New(cfg Config) *Driver {
	d := &Driver{cfg: cfg, timers: map[uint64]time.Time{}, lanes: lanes{runtime: cfg.Runtime}}
	d.transfers = newTransfers(&d.cfg, &d.lanes, d.postEvent)
	d.links.cfg = &d.cfg
	d.end = termination{cfg: &d.cfg, links: &d.links}
	return d
}

// Start has the member begin. ctx ends with the node.
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

// postEvent tells the member something, by any goroutine but the one that calls Step.
func (d *Driver) postEvent(ctx context.Context, e member.Event) {
	d.cfg.Runtime.Call(ctx, func() { d.AddEvent(e) })
}

func (d *Driver) postStrategyEvent(ctx context.Context, e strategy.Event) {
	d.cfg.Runtime.Call(ctx, func() { d.AddStrategyEvent(e) })
}

// Step tells the strategy and the member what is new, the timers whose time has come included, and has done what they
// want, until neither has anything for the other. The strategy comes first: of what has come to this node it knows
// before the member can say that all has.
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

// fireTimers reports whether the member's time has come, or a timer's of the strategy, which is told so.
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

// arm asks for a Step when the first of the timers is due.
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

// reportMembers tells the strategy of the table, if it is another than it knows. A survey waits until what this node is handing
// over has gone.
func (d *Driver) reportMembers() {
	if d.cfg.Strategy == nil || d.ended {
		return
	}
	if d.surveyDue && !d.cfg.Member.Exporting() {
		d.surveyDue = false
		d.InLane("survey", "look for hosts that others may own", d.survey)
	}
	if e, news := d.cfg.Member.NewMembers(); news {
		d.AddStrategyEvent(e)
	}
}

// execute has a member's action done. It waits for nothing.
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

// InLane runs f after the functions that were put into the same lane before. An error of it ends the node.
func (d *Driver) InLane(lane, what string, f func(context.Context) error) {
	d.lanes.putRequired(lane, what, f)
}

// Pump sends the links that are due. owner returns the node that owns a host; false while no node can take its links.
// One goroutine calls it, again and again.
func (d *Driver) Pump(ctx context.Context, owner func(host string) (strategy.Node, bool)) {
	d.links.pump(owner, d.transfers.drainTarget.Load())
	if d.cfg.Strategy == nil {
		return
	}
	if hosts, links := d.cfg.Engine.Unrouted(); len(hosts) > 0 {
		d.postStrategyEvent(ctx, strategy.OwnersNeeded{Hosts: hosts, Links: links})
	}
}

// Batches returns how many batches of links were sent and received. Any goroutine may call it.
func (d *Driver) Batches() (sent, received int64) {
	return d.links.sent.Load(), d.links.received.Load()
}

// Leaving reports whether this node leaves, so that another member receives its links. Any goroutine may call it.
func (d *Driver) Leaving() bool { return d.transfers.leaving() }

// Idle reports whether this node has nothing to do that the crawl's end waits for.
func (d *Driver) Idle() bool { return d.end.report().Idle }

// DetectEnd checks whether the crawl is done. The caller repeats it: the more often, the sooner the end is found.
// A node that is not idle, or of another epoch, is asked once in half a beat.
func (d *Driver) DetectEnd() { d.end.detect() }

// Close closes open readings when all that Go was given has ended.
func (d *Driver) Close() { d.transfers.close() }
