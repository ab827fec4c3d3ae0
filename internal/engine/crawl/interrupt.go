package crawl

import (
	"context"
	"errors"
	"sync"
)

// An interruptScope is the context of all visits under way that began since the last Interrupt.
type interruptScope struct {
	mu  sync.Mutex // guards the fields below
	ctx context.Context
	end context.CancelCauseFunc
}

// errInterrupted is the cause of requests that Interrupt has canceled.
var errInterrupted = errors.New("interrupted")

// Interrupt cancels all requests under way: the node's lease has expired, and another node may be about to visit the
// same hosts. Their URLs are queued again.
func (e *Engine) Interrupt() {
	e.runner.interrupts.mu.Lock()
	defer e.runner.interrupts.mu.Unlock()
	if e.runner.interrupts.end != nil {
		e.runner.interrupts.end(errInterrupted)
		e.runner.interrupts.ctx, e.runner.interrupts.end = nil, nil
	}
}

// join returns the context for a visit that begins now.
func (s *interruptScope) join(fetching context.Context) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		s.ctx, s.end = context.WithCancelCause(fetching)
	}
	return s.ctx
}
