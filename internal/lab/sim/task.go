package sim

import (
	"context"
	"iter"
	"time"
)

// A lifecycle is that of a program: it can be paused and resumed, and ends.
type lifecycle struct {
	k         *kernel
	began     moment
	ended     bool
	paused    bool
	pausedAt  moment   // start of the last pause
	resumedAt moment   // end of the last pause; 0: never paused
	deferred  []func() // calls to make after the pause
}

// do calls f now; after the pause if the program is paused; never if it has ended.
func (l *lifecycle) do(f func()) {
	switch {
	case l.ended:
	case l.paused:
		l.deferred = append(l.deferred, f)
	default:
		f()
	}
}

func (l *lifecycle) after(d time.Duration, f func()) { l.k.schedule(l, d, f) }

// pause stops the program until resume, which makes the calls that it missed.
func (l *lifecycle) pause() { l.paused, l.pausedAt = true, l.k.now }

func (l *lifecycle) resume() {
	l.paused, l.resumedAt = false, l.k.now
	held := l.deferred
	l.deferred = nil
	for _, f := range held {
		l.after(0, f)
	}
}

// wasPaused reports whether the last pause overlaps a time range.
func (l *lifecycle) wasPaused(from, to moment) bool {
	return (l.paused || l.resumedAt > 0 && l.resumedAt >= from) && l.pausedAt <= to
}

// A task is a simulated goroutine of a process. Only one task runs at a time, until it blocks, so that runs with the
// same seed have the same events.
type task struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

// tasks are the tasks of a process, and end with it.
type tasks struct {
	lifecycle
	ctx     context.Context
	stop    context.CancelFunc
	all     map[*task]bool
	running *task
}

// Go starts a task that calls f.
func (p *tasks) Go(f func(ctx context.Context)) {
	t := new(task)
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		f(p.ctx)
	})
	p.all[t] = true
	p.after(0, func() { p.run(t) })
}

func (p *tasks) run(t *task) {
	p.running = t
	_, waits := t.next()
	p.running = nil
	if !waits {
		delete(p.all, t)
	}
}

// await blocks the current task until done is called, which it passes to begin. It returns false if the process has
// ended.
func (p *tasks) await(begin func(done func())) bool {
	if p.ended {
		return false
	}
	t := p.running
	begin(func() { p.after(0, func() { p.run(t) }) })
	return t.yield(struct{}{})
}

// sleep blocks for d, and reports whether ctx is still active.
func (p *tasks) sleep(ctx context.Context, d time.Duration) bool {
	return p.await(func(done func()) { p.after(d, done) }) && ctx.Err() == nil
}

// close ends the process and its blocked tasks. The current task, if any, runs to its end.
func (p *tasks) close() {
	p.ended, p.deferred = true, nil
	p.stop()
	for t := range p.all {
		if t != p.running {
			t.stop()
		}
	}
}

// query sends a request to the registry, and reports whether it was answered.
func (p *process) query(bytes int, do func()) (ok bool) {
	return p.await(func(done func()) {
		p.w.reg.request(p, bytes, do, func(answered bool) {
			ok = answered
			done()
		})
	}) && ok
}

// waitShipped blocks until all current entries are shipped.
func (p *process) waitShipped(ctx context.Context) error {
	p.await(p.whenShipped)
	return ctx.Err()
}
