package crawl

import "context"

// Drain returns when, as the router says whose hosts are when it is called, no visit is under way to a host that is not this node's,
// nothing of these hosts is undecided, and all that is known of them is in the journal, and shipped. It needs a Run to commit.
func (e *Engine) Drain(ctx context.Context) error {
	for _, over := range e.foreignVisits() {
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	// Who was about to put something in does so before this is durable; who comes later is told that the hosts are others'.
	if err := e.Land(ctx); err != nil {
		return err
	}
	if e.wavers() {
		if err := e.decide(ctx); err != nil {
			return err
		}
	}
	return e.Land(ctx)
}

// foreignVisits are the visits to hosts that are not this node's, each by what is closed when it is over.
func (e *Engine) foreignVisits() (all []<-chan struct{}) {
	return e.workers.matching(func(v visiting) bool { return !e.ours(v.host) || !e.ours(v.asks) })
}
