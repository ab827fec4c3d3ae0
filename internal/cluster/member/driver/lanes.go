package driver

import (
	"context"
	"fmt"
	"sync"
)

// lanes run functions: those of one lane sequentially, those of different lanes concurrently.
type lanes struct {
	runtime Runtime
	mu      sync.Mutex // guards queue
	queue   map[string][]func(context.Context)
}

// put runs f after the earlier functions of the same lane. Functions that have not started when the node ends are
// dropped.
func (l *lanes) put(lane string, f func(context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue == nil {
		l.queue = map[string][]func(context.Context){}
	}
	queue, busy := l.queue[lane]
	l.queue[lane] = append(queue, f)
	if !busy {
		l.runtime.Go(func(ctx context.Context) { l.run(ctx, lane) })
	}
}

// putRequired is put for functions that the node cannot do without: an error ends the node.
func (l *lanes) putRequired(lane, what string, f func(context.Context) error) {
	l.put(lane, func(ctx context.Context) {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			l.runtime.Fail(fmt.Errorf("%s: %w", what, err))
		}
	})
}

func (l *lanes) run(ctx context.Context, lane string) {
	for {
		l.mu.Lock()
		queue := l.queue[lane]
		if len(queue) == 0 || ctx.Err() != nil {
			delete(l.queue, lane)
			l.mu.Unlock()
			return
		}
		l.queue[lane] = queue[1:]
		l.mu.Unlock()
		queue[0](ctx)
	}
}
