package crawl

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A run that stays does not end when nothing waits: links may come from other nodes, and seeds from a person. Its
// workers sleep in the frontier then.

// keepOpen is whether a run that stays is to end; the frontier is told of it with mu held.
type keepOpen struct {
	mu       sync.Mutex
	finished bool
}

// keepFrontierOpen begins a run that stays, unless it is to end already. While seeds are taken in, every run does.
func (e *Engine) keepFrontierOpen() {
	e.control.stays.mu.Lock()
	defer e.control.stays.mu.Unlock()
	e.frontier.KeepOpen(e.cfg.Stay && !e.control.stays.finished || !e.roots.feed.ended())
}

// Finish lets a run end that stays, when nothing waits any more. It does not wait for links that other nodes have yet
// to take; they are kept for the next run.
func (e *Engine) Finish() {
	e.control.stays.mu.Lock()
	defer e.control.stays.mu.Unlock()
	e.control.stays.finished = true
	e.frontier.KeepOpen(!e.roots.feed.ended())
}

// Idle reports whether nothing waits, is under way, is undecided, is in the outbox, or is done and not said to be (see
// Parts.Finished), and what was done is durable: a slow disk may take its time, and nobody would fetch again what a
// crash costs once the crawl is done. A link that is on its way from one node to another is in the outbox of the first
// until the second has it.
//
// So a crawl of several nodes is done when all were idle, and all were idle still when each was asked again after that,
// and nothing came to any of them in between: [Engine.Received] was the same.
func (e *Engine) Idle() bool {
	dry, moves := e.frontier.Dry()
	// What leaves the outbox becomes undecided, or waits; what is decided waits. What was fetched is unsaid before it
	// leaves the frontier. What waits when it has been looked for
	// makes a move.
	if !dry || !e.peers.outbox.Empty() || e.pendingDedup() || e.claims.hasUnsaid() {
		return false
	}
	dry, now := e.frontier.Dry()
	return dry && now == moves && e.ledger.Settled()
}

// Received is how often links or seeds were brought to this engine.
func (e *Engine) Received() int64 { return e.peers.received.Load() }

// decideShare bounds how much of the time a run that stays may have seen decide, when nothing else is to be done.
const decideShare = 10

// keepDeciding has seen decide what it is not sure of whenever nothing else waits in a run that stays, until the
// context ends.
func (e *Engine) keepDeciding(ctx context.Context) error {
	if e.known.db == nil || !e.cfg.Stay {
		return nil
	}
	tick := time.NewTicker(e.cfg.Commit)
	defer tick.Stop()
	for next := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if dry, _ := e.frontier.Dry(); !dry || !e.pendingDedup() || time.Now().Before(next) {
			continue
		}
		began := time.Now()
		if err := e.decide(ctx); err != nil && !canceled(err) {
			return fmt.Errorf("decide what is news: %w", err)
		}
		next = time.Now().Add(decideShare * time.Since(began))
	}
}
