package driver

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// stepStrategy passes pending events to the strategy, and executes its actions.
func (d *Driver) stepStrategy(now time.Time) {
	if len(d.strategyEvents) == 0 || d.ended {
		return
	}
	d.strategyActions = d.cfg.Strategy.Step(now, d.strategyEvents, d.strategyActions[:0])
	d.strategyEvents = d.strategyEvents[:0]
	for _, a := range d.strategyActions {
		d.executeStrategy(a)
	}
}

func (d *Driver) executeStrategy(a strategy.Action) {
	w := d.cfg.Runtime
	switch a := a.(type) {
	case strategy.Send:
		w.Send(a.To, KindStrategy, a.Data)
	case strategy.Persist:
		d.lanes.put("strategy", func(ctx context.Context) { d.persist(ctx, a) })
	case strategy.Read:
		d.lanes.put("strategy", func(ctx context.Context) { d.readLog(ctx, a.After) })
	case strategy.Trim:
		d.lanes.put("strategy", func(ctx context.Context) {
			if err := w.Trim(ctx, a.Before); err != nil && ctx.Err() == nil {
				d.cfg.Log.Debug("cannot trim the strategy's log", "err", err)
			}
		})
	case strategy.ViewChanged:
		d.viewChanged = true
		d.AddEvent(member.Route{View: d.cfg.Strategy.View()})
	case strategy.Acknowledged:
		d.AddEvent(member.Acknowledged(a))
	case strategy.HandOver:
		w.Go(func(ctx context.Context) { d.handOver(ctx, a) })
	case strategy.Survey:
		d.surveyDue = true
	case strategy.Probe:
		w.Go(func(ctx context.Context) { d.probe(ctx, a) })
	case strategy.ListQueues:
		w.Go(func(ctx context.Context) { d.spare(ctx, a.Limit) })
	case strategy.Timer:
		d.timers[a.Timer] = a.At
	}
}

// handOver moves hosts without a request in flight at once, and the others when their requests have ended. An epoch
// lasts as long as the slowest host that moves in it.
func (d *Driver) handOver(ctx context.Context, a strategy.HandOver) {
	busy := d.cfg.Engine.Busy(a.Hosts)
	quiet := slices.DeleteFunc(slices.Clone(a.Hosts), func(h string) bool { return busy[h] != nil })
	if len(quiet) > 0 {
		d.postEvent(ctx, member.HandOver{Hosts: quiet, To: a.To})
	}
	for _, host := range a.Hosts {
		if over := busy[host]; over != nil {
			d.cfg.Runtime.Go(func(ctx context.Context) {
				if over(ctx) == nil {
					d.postEvent(ctx, member.HandOver{Hosts: []string{host}, To: a.To})
				}
			})
		}
	}
}

// persist appends to the log, unless this node's lease has ended: then other nodes may be deciding without it.
func (d *Driver) persist(ctx context.Context, a strategy.Persist) {
	e := strategy.Persisted{ID: a.ID, State: strategy.InDoubt}
	if d.cfg.Runtime.Leased() {
		number, err := d.cfg.Runtime.Append(ctx, a.Data, a.After)
		switch {
		case err == nil:
			e.Number, e.State = number, strategy.Durable
		case errors.Is(err, member.ErrStale):
			e.State = strategy.Stale
		default:
			d.cfg.Log.Debug("a write to the strategy's log may have failed", "err", err)
		}
	}
	d.postStrategyEvent(ctx, e)
}

// readLog passes all entries of the log to the strategy. It retries until it can read them.
func (d *Driver) readLog(ctx context.Context, after uint64) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := d.cfg.Runtime.Read(ctx, after, func(number uint64, data []byte) error {
			d.postStrategyEvent(ctx, strategy.LogEntry{Number: number, Data: bytes.Clone(data)})
			after = number
			return ctx.Err()
		})
		if err == nil {
			d.postStrategyEvent(ctx, strategy.LogEnd{Last: after})
			return
		}
		d.cfg.Log.Debug("cannot read the strategy's log", "err", err)
		if !d.cfg.Runtime.Pause(ctx, wait) {
			return
		}
	}
}

func (d *Driver) survey(ctx context.Context) error {
	err := d.cfg.Engine.Survey(ctx, func(hosts []string) error {
		d.postStrategyEvent(ctx, strategy.Held{Hosts: hosts})
		return ctx.Err()
	})
	if err == nil {
		d.postStrategyEvent(ctx, strategy.Surveyed{})
	}
	return err
}

// spare reports the hosts with the longest queues. If they cannot be read, it reports none.
func (d *Driver) spare(ctx context.Context, most int) {
	queues, err := d.cfg.Engine.Queues(ctx, most)
	if err != nil {
		d.cfg.Log.Debug("cannot read the longest queues", "err", err)
		queues = nil
	}
	hosts := make([]string, len(queues))
	for i, q := range queues {
		hosts[i] = q.Host
	}
	busy := d.cfg.Engine.Busy(hosts)
	for i := range queues {
		queues[i].Busy = busy[queues[i].Host] != nil
	}
	d.postStrategyEvent(ctx, strategy.QueueList{Queues: queues})
}

func (d *Driver) probe(ctx context.Context, a strategy.Probe) {
	took, network, err := d.cfg.Engine.Probe(ctx, a.Host, a.Timeout)
	if err != nil {
		d.cfg.Log.Debug("cannot reach a host", "host", a.Host, "in", a.Timeout, "err", err)
	}
	d.postStrategyEvent(ctx, strategy.ProbeResult{Host: a.Host, OK: err == nil, Connect: took, Network: network})
}
