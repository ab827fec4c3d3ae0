package sim

import (
	"context"
	"iter"
	"time"
)

// A task is a function of a process that waits, as a goroutine of a node does: it runs until it waits for something,
// and goes on when that has come. One runs at a time, so that a run stays the same to the last event.
type task struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

// Go does f beside all else.
func (p *process) Go(f func(ctx context.Context)) {
	t := new(task)
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		f(p.ctx)
	})
	p.tasks[t] = true
	p.w.k.within(p, 0, func() { p.run(t) })
}

// run lets a task go on.
func (p *process) run(t *task) {
	p.task = t
	_, waits := t.next()
	p.task = nil
	if !waits {
		delete(p.tasks, t)
	}
}

// await lets the task that runs wait until done is called, which begin is given. It is false if the process has ended.
func (p *process) await(begin func(done func())) bool {
	if p.ended {
		return false
	}
	t := p.task
	begin(func() { p.w.k.within(p, 0, func() { p.run(t) }) })
	return t.yield(struct{}{})
}

// sleep waits, and reports whether ctx still goes on.
func (p *process) sleep(ctx context.Context, d time.Duration) bool {
	return p.await(func(done func()) { p.w.k.within(p, d, done) }) && ctx.Err() == nil
}

// query asks the registry, and reports whether it has answered.
func (p *process) query(bytes int, do func()) (ok bool) {
	return p.await(func(done func()) {
		p.w.reg.ask(p, bytes, do, func(answered bool) {
			ok = answered
			done()
		})
	}) && ok
}

// shipped waits until all that is entered by now is shipped.
func (p *process) shipped(ctx context.Context) error {
	p.await(p.whenShipped)
	return ctx.Err()
}

// endTasks ends the tasks of a process that has ended, where they wait. One that has just ended its process itself goes
// on to its own end.
func (p *process) endTasks() {
	for t := range p.tasks {
		if t != p.task {
			t.stop()
		}
	}
}
