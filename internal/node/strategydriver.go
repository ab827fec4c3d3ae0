package node

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"kumo/internal/bus"
	"kumo/internal/member"
	"kumo/internal/strategy"
)

// A Strategist is the engine's part in strategies that decide host by host.
type Strategist interface {
	// Probe makes a connection to a host and closes it, and says how long that took, and in which network the host is, if
	// that is known.
	Probe(ctx context.Context, host string, timeout time.Duration) (connect time.Duration, network string, err error)
	// Survey calls f with hosts that the engine has something of and that are not its own, some at a time.
	Survey(ctx context.Context, f func(hosts []string) error) error
	// Queues are hosts where URLs wait, those with the longest queues first, so many at most.
	Queues(ctx context.Context, most int) ([]strategy.Queue, error)
	// Busy are those of some hosts to which a request is under way, each with what is closed when it has ended.
	Busy(hosts []string) map[string]<-chan struct{}
	Wanted() []string    // hosts of links whose owners are not known, or refuse them, since it was called last
	Wake(hosts []string) // lets links be routed that rest; nil: all
}

// StrategyLog is the log that all nodes' strategies share.
const StrategyLog = "strategy"

// A strategyDriver carries out what a strategy wants done that is no Placer. It is the loop's.
type strategyDriver struct {
	n       *Node
	s       strategy.Strategy
	events  chan strategy.Event
	timer   *time.Timer // for the first of wake
	wake    map[uint64]time.Time
	surveys bool // one is wanted
	news    bool // the view is another one: links that rest may have owners
	out     []strategy.Action
	batch   []strategy.Event
	done    []member.Event // for the member, from what was carried out
}

func newStrategyDriver(n *Node, s strategy.Strategy) *strategyDriver {
	if s == nil {
		return nil
	}
	return &strategyDriver{n: n, s: s, events: make(chan strategy.Event, 1024), timer: time.NewTimer(time.Hour),
		wake: map[uint64]time.Time{}}
}

// events is what the strategy is told; nil if there is none.
func (m *strategyDriver) eventsChan() <-chan strategy.Event {
	if m == nil {
		return nil
	}
	return m.events
}

func (m *strategyDriver) timerChan() <-chan time.Time {
	if m == nil {
		return nil
	}
	return m.timer.C
}

// tell tells the strategy something. Who is not the loop may wait for it.
func (m *strategyDriver) tell(ctx context.Context, e strategy.Event) {
	select {
	case m.events <- e:
	case <-ctx.Done():
	}
}

// step tells the strategy events, and has done what it wants. It returns what that is to the member.
func (m *strategyDriver) step(first ...strategy.Event) []member.Event {
	m.batch = append(m.batch[:0], first...)
	for len(m.batch) < maxEvents {
		select {
		case e := <-m.events:
			m.batch = append(m.batch, e)
			continue
		default:
		}
		break
	}
	m.done = m.done[:0]
	m.out = m.s.Step(time.Now(), m.batch, m.out[:0])
	for _, a := range m.out {
		m.carryOut(a)
	}
	return m.done
}

// fireTimers is told that a timer's time may have come.
func (m *strategyDriver) fireTimers() []member.Event {
	var fired []strategy.Event
	now := time.Now()
	for t, at := range m.wake {
		if !at.After(now) {
			fired = append(fired, strategy.Fired{Timer: t})
			delete(m.wake, t)
		}
	}
	m.rearm()
	if len(fired) == 0 {
		return nil
	}
	return m.step(fired...)
}

func (m *strategyDriver) rearm() {
	next := time.Now().Add(time.Hour)
	for _, at := range m.wake {
		if at.Before(next) {
			next = at
		}
	}
	m.timer.Reset(time.Until(next))
}

// syncMembers tells the strategy of the table, if it is another than it knows. A survey waits until what this node is
// handing over has gone.
func (m *strategyDriver) syncMembers() []member.Event {
	if m.surveys && !m.n.member.Exporting() {
		m.surveys = false
		m.n.inLane("survey", "look for hosts that others may own", m.survey)
	}
	if e, news := m.n.member.News(); news {
		return m.step(e)
	}
	return nil
}

func (m *strategyDriver) carryOut(a strategy.Action) {
	n := m.n
	switch a := a.(type) {
	case strategy.Send:
		n.send(a.To, kindStrategy, a.Data)
	case strategy.Persist:
		n.tasks.inLane("strategy", func(ctx context.Context) { m.persist(ctx, a) })
	case strategy.Read:
		n.tasks.inLane("strategy", func(ctx context.Context) { m.read(ctx, a.After) })
	case strategy.Trim:
		n.tasks.inLane("strategy", func(ctx context.Context) {
			if err := n.cfg.Bus.Trim(ctx, StrategyLog, a.Before); err != nil && ctx.Err() == nil {
				n.log.Debug("the strategy's log is not trimmed", "err", err)
			}
		})
	case strategy.Changed:
		m.news = true
		m.done = append(m.done, member.Route{View: m.s.View()})
	case strategy.Acknowledged:
		m.done = append(m.done, member.Acknowledged(a))
	case strategy.HandOver:
		n.tasks.Go(func(ctx context.Context) { m.handOver(ctx, a) })
	case strategy.Survey:
		m.surveys = true
	case strategy.Probe:
		n.tasks.Go(func(ctx context.Context) { m.probe(ctx, a) })
	case strategy.Spare:
		n.tasks.Go(func(ctx context.Context) { m.spare(ctx, a.Most) })
	case strategy.Timer:
		m.wake[a.Timer] = a.At
		m.rearm()
	}
}

// handOver has hosts move to which no request is under way: at once, or when it has ended. An epoch lasts as long as
// the slowest of all that move under it.
func (m *strategyDriver) handOver(ctx context.Context, a strategy.HandOver) {
	busy := m.n.cfg.Engine.Busy(a.Hosts)
	quiet := slices.DeleteFunc(slices.Clone(a.Hosts), func(h string) bool { return busy[h] != nil })
	if len(quiet) > 0 {
		m.n.tell(ctx, member.HandOver{Hosts: quiet, To: a.To})
	}
	for host, over := range busy {
		m.n.tasks.Go(func(ctx context.Context) {
			select {
			case <-over:
				m.n.tell(ctx, member.HandOver{Hosts: []string{host}, To: a.To})
			case <-ctx.Done():
			}
		})
	}
}

// persistPatience bounds how long a write to the log is waited for.
const persistPatience = 10 * time.Second

// persist writes to the log, unless this node's lease is over: then others may be about to decide without it.
func (m *strategyDriver) persist(ctx context.Context, a strategy.Persist) {
	e := strategy.Persisted{ID: a.ID, State: strategy.Doubt}
	if holds(m.n.cfg.Router.Until(), time.Now()) {
		one, cancel := context.WithTimeout(ctx, persistPatience)
		number, err := m.n.cfg.Bus.Append(one, StrategyLog, a.Data, a.After)
		cancel()
		switch {
		case err == nil:
			e.Number, e.State = number, strategy.Durable
		case errors.Is(err, bus.ErrStale):
			e.State = strategy.Stale
		default:
			m.n.log.Debug("a write to the strategy's log is in doubt", "err", err)
		}
	}
	m.tell(ctx, e)
}

// read tells of all that the log has, however long the registry is away.
func (m *strategyDriver) read(ctx context.Context, after uint64) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := m.n.cfg.Bus.Read(ctx, StrategyLog, after, func(number uint64, data []byte) error {
			m.tell(ctx, strategy.Logged{Number: number, Data: bytes.Clone(data)})
			after = number
			return ctx.Err()
		})
		if err == nil {
			m.tell(ctx, strategy.AtEnd{Last: after})
			return
		}
		m.n.log.Debug("the strategy's log cannot be read", "err", err)
		if !pause(ctx, wait) {
			return
		}
	}
}

func (m *strategyDriver) survey(ctx context.Context) error {
	err := m.n.cfg.Engine.Survey(ctx, func(hosts []string) error {
		m.tell(ctx, strategy.Held{Hosts: hosts})
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	m.tell(ctx, strategy.Surveyed{})
	return nil
}

// spare tells which hosts have the longest queues. Where they cannot be read, none can be spared.
func (m *strategyDriver) spare(ctx context.Context, most int) {
	queues, err := m.n.cfg.Engine.Queues(ctx, most)
	if err != nil {
		m.n.log.Debug("no host is spared", "err", err)
		queues = nil
	}
	m.tell(ctx, strategy.Spared{Queues: queues})
}

func (m *strategyDriver) probe(ctx context.Context, a strategy.Probe) {
	took, network, err := m.n.cfg.Engine.Probe(ctx, a.Host, a.Timeout)
	if err != nil {
		m.n.log.Debug("a host is not reached", "host", a.Host, "in", a.Timeout, "err", err)
	}
	m.tell(ctx, strategy.Reached{Host: a.Host, OK: err == nil, Connect: took, Network: network})
}

// Arrived tells the strategy which hosts have come with a transfer. It is the engine's to call, and quick.
func (n *Node) Arrived(_ member.Transfer, hosts []string) {
	if n.driver != nil && len(hosts) > 0 { // at once: Whole comes after it
		n.driver.tell(n.tasks.ctx, strategy.Held{Hosts: hosts})
	}
}
