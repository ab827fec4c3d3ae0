package sim

import (
	"context"
	"iter"
	"time"
)

// A life is that of a node's program: it may stand still for a while, and ends.
type lifecycle struct {
	k         *kernel
	began     moment
	ended     bool
	paused    bool
	pausedAt  moment   // when it stood still, the last time
	resumedAt moment   // when it went on after that; 0: it never did
	deferred  []func() // what happens when it goes on
}

// do does something now; when the program goes on, if it is paused; not at all if it has ended.
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

// pause makes the program stand still, and resume lets it do at once what it has missed.
func (l *lifecycle) pause() { l.paused, l.pausedAt = true, l.k.now }

func (l *lifecycle) resume() {
	l.paused, l.resumedAt = false, l.k.now
	held := l.deferred
	l.deferred = nil
	for _, f := range held {
		l.after(0, f)
	}
}

// wasPaused reports whether the program has stood still between two moments, as far as the last time goes.
func (l *lifecycle) wasPaused(from, to moment) bool {
	return (l.paused || l.resumedAt > 0 && l.resumedAt >= from) && l.pausedAt <= to
}

// A task is a function of a process that waits, as a goroutine of a node does: it runs until it waits for something,
// and goes on when that has come. One runs at a time, so that a run stays the same to the last event.
type task struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

// tasks are those of a process, which end with it.
type tasks struct {
	lifecycle
	ctx     context.Context
	stop    context.CancelFunc
	all     map[*task]bool
	running *task
}

// Go does f beside all else.
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

// await lets the task that runs wait until done is called, which begin is given. It is false if the process has ended.
func (p *tasks) await(begin func(done func())) bool {
	if p.ended {
		return false
	}
	t := p.running
	begin(func() { p.after(0, func() { p.run(t) }) })
	return t.yield(struct{}{})
}

// sleep waits, and reports whether ctx still goes on.
func (p *tasks) sleep(ctx context.Context, d time.Duration) bool {
	return p.await(func(done func()) { p.after(d, done) }) && ctx.Err() == nil
}

// closeLog ends the process, and its tasks where they wait. One that has just ended its process itself goes on to its own
// end.
func (p *tasks) close() {
	p.ended, p.deferred = true, nil
	p.stop()
	for t := range p.all {
		if t != p.running {
			t.stop()
		}
	}
}

// query asks the registry, and reports whether it has answered.
func (p *process) query(bytes int, do func()) (ok bool) {
	return p.await(func(done func()) {
		p.w.reg.request(p, bytes, do, func(answered bool) {
			ok = answered
			done()
		})
	}) && ok
}

// shipped waits until all that is entered by now is shipped.
func (p *process) waitShipped(ctx context.Context) error {
	p.await(p.whenShipped)
	return ctx.Err()
}
