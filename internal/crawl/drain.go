package crawl

import "context"

// begin notes that a visit begins: before it is asked whose its host is, so that Drain knows of all that may have asked an earlier view.
func (e *Engine) begin(w *worker, host, asks string) {
	if e.router == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.visits == nil {
		e.visits = map[*worker]visiting{}
	}
	e.visits[w] = visiting{host, asks, make(chan struct{})}
}

// visiting is a visit under way.
type visiting struct {
	host, asks string
	over       chan struct{}
}

// ended notes that a worker's visit is over. The caller holds mu.
func (e *Engine) ended(w *worker) {
	if v, visits := e.visits[w]; visits {
		close(v.over)
		delete(e.visits, w)
	}
}

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
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range e.visits {
		if !e.ours(v.host) || !e.ours(v.asks) {
			all = append(all, v.over)
		}
	}
	return all
}
