package sim

import (
	"context"
	"slices"

	"kumo/internal/cluster/strategy"
)

// A record is the crawl's, as a process follows it: what it says all know at once.
type record struct{ *process }

func (r record) Seeded() (revision uint64, ok bool) {
	return uint64(r.w.seeded), r.Idle() && r.w.seeded == r.w.web.seeds
}

func (r record) Idle() bool { return !r.w.finished && !r.Admitting() }

func (r record) Received() int64 { return r.seeds }

func (r record) Admitting() bool { return r.unshippedSeeds > 0 }

func (r record) Finish(revision uint64) func(context.Context) {
	return func(context.Context) {
		r.query(100, func() {
			if int(revision) == r.w.seeded && !r.w.finished {
				r.w.finished = true
				r.w.checkFinish(r.node)
			}
		})
	}
}

// checkFinish judges whether the crawl is done when a node says so.
func (w *world) checkFinish(by strategy.Node) {
	w.logEvent("%s says that the crawl is done", by)
	if n, one := w.checker.coverage.missing(w.web); n > 0 {
		w.violateHost(one.host(), "%s says that the crawl is done, and %d pages were not fetched, %s for one", by, n,
			w.web.name(one))
	}
	t, err := w.table()
	if err != nil {
		w.violate("%s says that the crawl is done: %v", by, err)
		return
	}
	for _, p := range w.processes() {
		member := slices.ContainsFunc(t.Members, func(m strategy.Member) bool { return m.Node == p.node })
		if todo := p.pendingWork(); member && todo != "" {
			w.violate("%s says that the crawl is done, and %s", by, todo)
		}
	}
}
