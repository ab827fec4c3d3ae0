package crawl

import (
	"sync"

	"kumo/internal/state/frontier"
)

// A run that stays does not end when nothing waits: links may come from other nodes, and seeds from a person. Its
// workers sleep in the frontier then.

// keepOpen is whether a run that stays is to end; the frontier is told of it with mu held.
type keepOpen struct {
	cfg      *Config
	feed     *seedFeed
	frontier *frontier.Frontier

	mu       sync.Mutex
	finished bool
}

// keepFrontierOpen begins a run that stays, unless it is to end already. While seeds are taken in, every run does.
func (k *keepOpen) keepFrontierOpen() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.frontier.KeepOpen(k.cfg.KeepOpen && !k.finished || !k.feed.ended())
}

// finish lets a run end that is kept open, when nothing waits any more. It does not wait for links that other nodes
// have yet to take; they are kept for the next run.
func (k *keepOpen) finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.finished = true
	k.frontier.KeepOpen(!k.feed.ended())
}

// Finish lets a run end that is kept open: see [Config.Stay].
func (e *Engine) Finish() { e.Seeding.open.finish() }

// Idle reports whether nothing is pending, under way, undecided, in the outbox, or finished but not reported (see
// Parts.Finished), and all is durable. A link that is on its way to another node is in the outbox until that has it.
//
// A crawl of several nodes is done when all were idle in two rounds of questions, and [Engine.Received] of none has
// changed in between.
func (e *Engine) Idle() bool {
	dry, moves := e.frontier.IsDrained()
	// What leaves the outbox becomes undecided, or waits; what is decided waits. What was fetched is unsaid before it
	// leaves the frontier. What waits when it has been looked for
	// makes a move.
	if !dry || !e.Links.outbox.Empty() || e.known.pendingDedup() || e.Dispatches.claims.hasUnreported() {
		return false
	}
	dry, now := e.frontier.IsDrained()
	return dry && now == moves && e.ledger.IsDurable()
}

// Received is how often links or seeds were brought to this engine.
func (e *Engine) Received() int64 { return e.holds.received.Load() }
