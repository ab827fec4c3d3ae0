package crawl

import (
	"context"
	"errors"
	"sync"
)

// A interruptScope is what the visits under way have in common that began since the last Interrupt.
type interruptScope struct {
	mu  sync.Mutex // guards below
	ctx context.Context
	end context.CancelCauseFunc
}

// errInterrupted is why requests end that others would not wait for.
var errInterrupted = errors.New("interrupted")

// Interrupt breaks off all requests under way: the node's lease has ended, and another may be about to ask the same
// hosts. Their URLs wait again.
func (e *Engine) Interrupt() {
	e.runner.interrupts.mu.Lock()
	defer e.runner.interrupts.mu.Unlock()
	if e.runner.interrupts.end != nil {
		e.runner.interrupts.end(errInterrupted)
		e.runner.interrupts.ctx, e.runner.interrupts.end = nil, nil
	}
}

// join is the context of a visit that begins now.
func (s *interruptScope) join(fetching context.Context) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		s.ctx, s.end = context.WithCancelCause(fetching)
	}
	return s.ctx
}
