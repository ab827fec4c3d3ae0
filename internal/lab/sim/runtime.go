package sim

import (
	"cmp"
	"context"
	"slices"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/strategy"
)

// A virtualRuntime is what a process's driver runs on: virtual time, the network and the registry.
type virtualRuntime struct{ *process }

func (r virtualRuntime) Now() time.Time { return r.now() }

func (r virtualRuntime) Pause(ctx context.Context, d time.Duration) bool { return r.sleep(ctx, d) }

// Call has all calls of one moment done before one step.
func (r virtualRuntime) Call(_ context.Context, f func()) {
	p := r.process
	if p.ended {
		return
	}
	f()
	if !p.stepping {
		p.stepping = true
		p.after(0, func() {
			p.stepping = false
			p.driver.Step()
		})
	}
}

// RetryDeferred asks for a step when the process's clock shows a time.
func (r virtualRuntime) Wake(at time.Time) {
	p := r.process
	p.wakes++
	id := p.wakes
	p.after(p.untilClock(at), func() {
		if id == p.wakes {
			p.driver.Step()
		}
	})
}

// Send carries a message to where the node is now.
func (r virtualRuntime) Send(node strategy.Node, kind driver.Kind, data []byte) {
	p := r.process
	to, ok := p.w.machineOf[node]
	if !ok {
		return
	}
	p.w.messages.count(kind)
	p.w.net.send(p.m.index, to, len(data), func() {
		q := p.w.machines[to].proc
		if q == nil || q.node != node {
			return
		}
		p.w.k.schedule(q, 0, func() { q.driver.Message(q.ctx, p.node, kind, data) })
	})
}

func (r virtualRuntime) Do(a member.Action) {
	p := r.process
	switch a := a.(type) {
	case member.Watch:
		p.w.reg.watch(p, a)
	case member.Write:
		p.w.reg.put(p, a)
	case member.RecordJoin:
		p.enter(&entry{kind: entryJoined})
		p.journal.onCommit = append(p.journal.onCommit, func() { p.addEvent(member.JoinRecorded{}) })
	case member.Publish:
		p.publish(a.View)
	case member.Lost:
		p.w.logEvent("%s is lost: %s", p.node, a.Why)
		p.terminate(true)
	case member.Left:
		p.onLeft()
	case member.Failed:
		r.Fail(a.Err)
	default:
		p.w.violate("%s wants %T done, which is unknown here", p.node, a)
	}
}

func (r virtualRuntime) Leased() bool { return r.now().Before(r.view.Until()) }

func (r virtualRuntime) Fail(err error) {
	r.w.violate("%s failed: %v", r.node, err)
	r.terminate(false)
}

// A strategyLog is the log of a strategy, which all nodes share.
type strategyLog struct {
	entries []logEntry // from the first that is not trimmed
	last    uint64
}

type logEntry struct {
	number uint64
	data   []byte
}

func (r virtualRuntime) Append(_ context.Context, data []byte, after uint64) (number uint64, err error) {
	l, done := &r.w.log, false
	ok := r.query(len(data), func() {
		if done = l.last == after; done {
			l.last++
			number = l.last
			l.entries = append(l.entries, logEntry{number, data})
			r.w.moves.addLogEntry(data)
		}
	})
	switch {
	case !ok:
		return 0, errUnavailable
	case !done:
		return 0, member.ErrStale
	}
	return number, nil
}

func (r virtualRuntime) Read(_ context.Context, after uint64, f func(uint64, []byte) error) error {
	l := &r.w.log
	var found []logEntry
	if !r.query(50, func() {
		i, _ := slices.BinarySearchFunc(l.entries, after+1,
			func(e logEntry, n uint64) int { return cmp.Compare(e.number, n) })
		found = slices.Clone(l.entries[i:])
	}) {
		return errUnavailable
	}
	for _, e := range found {
		if err := f(e.number, e.data); err != nil {
			return err
		}
	}
	return nil
}

func (r virtualRuntime) Trim(_ context.Context, before uint64) error {
	l := &r.w.log
	if !r.query(50, func() {
		l.entries = slices.DeleteFunc(l.entries, func(e logEntry) bool { return e.number < before && e.number < l.last })
	}) {
		return errUnavailable
	}
	return nil
}
