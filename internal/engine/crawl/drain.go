package crawl

import (
	"context"
)

// Drain waits until no visit to the selected hosts is under way, none of their URLs is undecided in seen, and their
// data is in the journal, which is replicated. of selects the hosts; nil selects those that the router does not assign
// to this node when Drain is called. It needs a Run to commit.
func (e *Engine) Drain(ctx context.Context, of func(host string) bool) error {
	if of == nil {
		of = func(host string) bool { return !e.Inspector.hosts.ours(host) }
	}
	for _, over := range e.runner.workers.matching(func(v visiting) bool { return of(v.host) || of(v.politenessHost) }) {
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	// Calls that were about to add URLs do so before this is durable. Later calls see the new owners.
	if err := e.ledger.FlushDurable(ctx); err != nil {
		return err
	}
	if e.known.pendingDedup() {
		if err := e.Checkpoints.resolvePending(ctx); err != nil {
			return err
		}
	}
	return e.ledger.FlushDurable(ctx)
}

// Busy returns those of hosts that have a visit under way, each with a channel that is closed when the visit is over.
func (e *Engine) Busy(hosts []string) map[string]<-chan struct{} { return e.runner.workers.busy(hosts) }
