package driver

import (
	"context"
	"sync"
)

// lanes do things one after the other in each, beside those of other lanes.
type lanes struct {
	mu    sync.Mutex // guards below
	queue map[string][]func(context.Context)
}

// put does f after what was put into the same lane before. What has not begun when the node ends is not done.
func (l *lanes) put(w Runtime, lane string, f func(context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue == nil {
		l.queue = map[string][]func(context.Context){}
	}
	queue, busy := l.queue[lane]
	l.queue[lane] = append(queue, f)
	if !busy {
		w.Go(func(ctx context.Context) { l.drive(ctx, lane) })
	}
}

func (l *lanes) drive(ctx context.Context, lane string) {
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
