package crawl

import (
	"context"
)

// Drain returns when no visit is under way to hosts of which nothing is asked any more, nothing of them is undecided,
// and all that is known of them is in the journal, and shipped. Which they are of says; nil: all that are not this
// node's, as the router says when Drain is called. It needs a Run to commit.
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
	// Who was about to put something in does so before this is durable; who comes later is told that the hosts are
	// others'.
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

// Busy returns those of some hosts to which a visit is under way, each with a channel that is closed when it is over.
func (e *Engine) Busy(hosts []string) map[string]<-chan struct{} { return e.runner.workers.busy(hosts) }
