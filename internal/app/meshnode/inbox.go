package meshnode

import (
	"context"
	"fmt"
	"sync"

	"kumo/internal/base/wait"
	"kumo/internal/cluster/member/peer"
)

// maxEvents is the number of pending events above which no messages are accepted.
const maxEvents = 1 << 14

// An inbox queues events and calls for the node's loop, in order. It is safe for concurrent use.
type inbox struct {
	signal chan struct{} // capacity 1: signals events or calls
	done   chan struct{} // closed when Run ends

	mu     sync.Mutex // guards below
	events []peer.Event
	calls  []func()
}

func newInbox() *inbox { return &inbox{signal: make(chan struct{}, 1), done: make(chan struct{})} }

func (b *inbox) send(e ...peer.Event) { sendAll(b, e) }

func sendAll[E any](b *inbox, all []E) {
	b.mu.Lock()
	for _, e := range all {
		b.events = append(b.events, e)
	}
	b.mu.Unlock()
	wait.Wake(b.signal)
}

// full reports whether the loop falls behind.
func (b *inbox) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.events) > maxEvents
}

func (b *inbox) post(f func()) {
	b.mu.Lock()
	b.calls = append(b.calls, f)
	b.mu.Unlock()
	wait.Wake(b.signal)
}

func (b *inbox) drain() (events []peer.Event, calls []func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	events, calls = b.events, b.calls
	b.events, b.calls = nil, nil
	return events, calls
}

// call runs f in the loop, and then waits for the channel that f returns, if any.
func (b *inbox) call(ctx context.Context, f func() (until <-chan struct{})) error {
	until := make(chan (<-chan struct{}), 1)
	b.post(func() { until <- f() })
	var over <-chan struct{}
	select {
	case over = <-until:
	case <-b.done:
		return errNodeEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if over == nil {
		return nil
	}
	select {
	case <-over:
		return nil
	case <-b.done:
		return errNodeEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tasks are goroutines besides the loop. An error of one stops the node. begin must be called first.
type tasks struct {
	ctx  context.Context
	stop context.CancelCauseFunc
	all  sync.WaitGroup
}

func (t *tasks) begin(ctx context.Context) { t.ctx, t.stop = context.WithCancelCause(ctx) }

func (t *tasks) run(what string, f func(context.Context) error) {
	t.all.Go(func() {
		if err := f(t.ctx); err != nil && t.ctx.Err() == nil {
			t.stop(fmt.Errorf("%s: %w", what, err))
		}
	})
}
