package crawl

import (
	"sync"

	"kumo/internal/state/frontier"
)

// A persistent run (Config.KeepOpen) does not end when the queues are empty: other nodes may send links, and users may
// add seeds. Its workers then wait in the frontier.

// keepOpen decides whether a persistent run is to end. The frontier is updated with mu held.
type keepOpen struct {
	cfg      *Config
	feed     *seedFeed
	frontier *frontier.Frontier

	mu       sync.Mutex
	finished bool
}

// keepFrontierOpen keeps the frontier open in a persistent run that is not to end yet, and in any run while seeds are
// being read.
func (k *keepOpen) keepFrontierOpen() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.frontier.KeepOpen(k.cfg.KeepOpen && !k.finished || !k.feed.ended())
}

// finish lets a persistent run end once the queues are empty. It does not wait until other nodes have taken the links
// in the outbox; they are kept for the next run.
func (k *keepOpen) finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.finished = true
	k.frontier.KeepOpen(!k.feed.ended())
}

// Finish lets a persistent run end once the queues are empty: see [Config.KeepOpen].
func (e *Engine) Finish() { e.Seeding.open.finish() }

// Idle reports whether no URL is pending, under way, undecided, in the outbox, due again, or finished but not reported
// (see Parts.Finished), and all is durable. With continuous recrawls it never is. A link that is being sent to another
// node is in the outbox until that node has it.
//
// A crawl of several nodes is done when all nodes were idle in two successive rounds of queries, and [Engine.Received]
// of no node has changed between them.
func (e *Engine) Idle() bool {
	dry, moves := e.frontier.IsDrained()
	// Links that leave the outbox become undecided or queued, and decided ones are queued. A fetched URL is unreported
	// before it leaves the frontier. A URL that is queued after the first call of IsDrained changes the count of moves.
	if !dry || !e.Links.outbox.Empty() || e.known.pendingDedup() || e.Dispatches.claims.hasUnreported() ||
		!e.recrawls.isComplete() {
		return false
	}
	dry, now := e.frontier.IsDrained()
	return dry && now == moves && e.ledger.IsDurable()
}

// Received returns how often links or seeds were brought to this engine.
func (e *Engine) Received() int64 { return e.holds.received.Load() }
