package node

import (
	"context"
	"sync"
)

// tasks are the goroutines of a node. Those in a lane go one after the other.
type tasks struct {
	ctx   context.Context
	all   sync.WaitGroup
	mu    sync.Mutex // guards below
	lanes map[string][]func(context.Context)
}

func newTasks(ctx context.Context) *tasks {
	return &tasks{ctx: ctx, lanes: map[string][]func(context.Context){}}
}

// Go does f beside all others.
func (t *tasks) Go(f func(context.Context)) {
	t.all.Go(func() { f(t.ctx) })
}

// inLane does f after what was put into the same lane before. What has not begun when the node ends is not done.
func (t *tasks) inLane(lane string, f func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue, busy := t.lanes[lane]
	t.lanes[lane] = append(queue, f)
	if !busy {
		t.all.Go(func() { t.drive(lane) })
	}
}

func (t *tasks) drive(lane string) {
	for {
		t.mu.Lock()
		queue := t.lanes[lane]
		if len(queue) == 0 || t.ctx.Err() != nil {
			delete(t.lanes, lane)
			t.mu.Unlock()
			return
		}
		t.lanes[lane] = queue[1:]
		t.mu.Unlock()
		queue[0](t.ctx)
	}
}

func (t *tasks) wait() { t.all.Wait() }
