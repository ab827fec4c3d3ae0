package crawl

import (
	"context"
	"maps"
)

// Drain returns when no visit is under way to hosts of which nothing is asked any more, nothing of them is undecided,
// and all that is known of them is in the journal, and shipped. Which they are of says; nil: all that are not this
// node's, as the router says when Drain is called. It needs a Run to commit.
func (e *Engine) Drain(ctx context.Context, of func(host string) bool) error {
	if of == nil {
		of = func(host string) bool { return !e.ours(host) }
	}
	for _, over := range e.workers.matching(func(v visiting) bool { return of(v.host) || of(v.asks) }) {
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
	if e.pendingDedup() {
		if err := e.decide(ctx); err != nil {
			return err
		}
	}
	return e.ledger.FlushDurable(ctx)
}

// Busy are those of some hosts to which a visit is under way, each with what is closed when it is over.
func (e *Engine) Busy(hosts []string) map[string]<-chan struct{} {
	busy := make(map[string]<-chan struct{}, len(hosts))
	for _, host := range hosts {
		busy[host] = nil
	}
	e.workers.matching(func(v visiting) bool {
		for _, host := range []string{v.host, v.asks} {
			if _, wanted := busy[host]; wanted {
				busy[host] = v.over
			}
		}
		return false
	})
	maps.DeleteFunc(busy, func(_ string, over <-chan struct{}) bool { return over == nil })
	return busy
}
