package meshnode

import (
	"context"
	"sync/atomic"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/state/history"
)

// dueVisits finds the scheduled visits in the history that are due, and has the peer dispatch those of the hosts whose
// first backup this node is. It reads the whole history: often if that is fast, so that it takes a small part of the
// time.
type dueVisits struct {
	history *history.DB
	engine  *engineRef
	inbox   *inbox
	router  *Router
	runs    func() (started time.Time, running bool) // the present run of the crawl
	dueHere func(host string) bool                   // this node dispatches the host's due visits; for the loop

	// the start of the crawl for which a whole scan has found none that this node must dispatch, as Unix time in
	// nanoseconds; 0: none
	clean atomic.Int64
}

const (
	minScanInterval = time.Second
	maxScanInterval = 5 * time.Second // another node may have been the first backup until then
	scanShare       = 20              // a scan takes at most this part of the time
	maxDueBatch     = 256             // visits per event
)

func (s *dueVisits) run(ctx context.Context) error {
	for {
		pause := minScanInterval
		if e := s.engine.get(); e != nil {
			if enabled, continuous := e.Revisits(); !enabled {
				return nil
			} else if started, running := s.runs(); running && s.router.HasPlace() {
				began := time.Now()
				until := began
				if !continuous {
					until = started // a page is visited at most once in a run
				}
				next, err := s.scan(ctx, e, until, started)
				if err != nil {
					return err
				}
				pause = min(max(time.Until(next), minScanInterval), maxScanInterval)
				if !continuous {
					pause = minScanInterval
				}
				pause = max(pause, scanShare*time.Since(began))
			}
		}
		if wait.For(ctx, pause) != nil {
			return nil
		}
	}
}

// A dueBatch collects due visits of one host.
type dueBatch struct {
	host  string
	links []mesh.Link
}

// scan has the visits dispatched that are due at a time. It returns when the next one is due.
func (s *dueVisits) scan(ctx context.Context, e Engine, until, started time.Time) (next time.Time, err error) {
	next = until.Add(maxScanInterval)
	found := false
	var batch dueBatch
	flush := func() error {
		if len(batch.links) == 0 {
			return nil
		}
		due := mesh.Due{Host: batch.host, Links: batch.links}
		batch.links = nil
		return s.inbox.call(ctx, func() <-chan struct{} {
			if s.dueHere(due.Host) {
				found = true
				s.inbox.send(due)
			}
			return nil
		})
	}
	var failed error
	err = s.history.Scheduled(func(host string, u history.URL) bool {
		at := e.RevisitDue(&item.Revisit{Number: u.Visit, Data: u.Data})
		if at.After(until) {
			if at.Before(next) {
				next = at
			}
			return ctx.Err() == nil
		}
		if batch.host != host || len(batch.links) >= maxDueBatch {
			if failed = flush(); failed != nil {
				return false
			}
			batch.host = host
		}
		batch.links = append(batch.links, linkOf(&history.URL{Hash: u.Hash, Visit: u.Visit, Data: append([]byte(nil), u.Data...)}))
		return ctx.Err() == nil
	})
	if err == nil {
		if err = failed; err == nil {
			err = flush()
		}
	}
	if err != nil || ctx.Err() != nil {
		if ctx.Err() != nil {
			err = nil
		}
		return next, err
	}
	if found {
		s.clean.Store(0)
	} else {
		s.clean.Store(started.UnixNano())
	}
	return next, nil
}

// idle reports whether no visit will be dispatched again in the run of the crawl that began at a time.
func (s *dueVisits) idle(started time.Time) bool {
	e := s.engine.get()
	if e == nil {
		return false
	}
	enabled, continuous := e.Revisits()
	return !enabled || !continuous && s.clean.Load() == started.UnixNano()
}

// Revisit is called by the engine with a URL that it has visited again, or for the first time in a crawl with recrawls.
func (n *Node) Revisit(host, url string, next item.Revisit) {
	k := mesh.Link{Hash: mesh.Hash(history.HashOf(url)), Visit: next.Number, State: mesh.Scheduled, Item: next.Data}
	if next.Data == nil {
		k.State = mesh.Done
	}
	n.inbox.send(mesh.Finished{Host: host, Next: []mesh.Link{k}})
}

// enqueueRevisits passes the links of later visits to the engine, and sets done for those that are done.
func (t *intake) enqueueRevisits(ctx context.Context, e Engine, links []mesh.Link, done []bool) error {
	var all []item.Revisit
	var which []int
	for i, k := range links {
		if k.Visit > 0 {
			all, which = append(all, item.Revisit{Number: k.Visit, Data: k.Item}), append(which, i)
		}
	}
	if len(all) == 0 {
		return nil
	}
	some, err := e.TakeRevisits(ctx, all)
	if err != nil {
		return err
	}
	for i, j := range which {
		done[j] = i < len(some) && some[i]
	}
	return nil
}
