package crawl

import (
	"time"

	"kumo/internal/base/item"
	"kumo/internal/content/policy"
	"kumo/internal/state/frontier"
	"kumo/internal/state/rank"
)

// Tuning is what can be other at any time of how a crawl goes.
type Tuning struct {
	frontier.Delays
	Tries  int   // 0: as by default
	Pages  int64 // of all runs together; 0: without limit
	Prefer rank.Preferences
	Block  *policy.BlockRules // beside those of a file
}

// Tune has the crawl go otherwise from now on. Preferences hold for URLs that are found then; what is
// blocked is so also where it waits, when its turn comes. What robots.txt files ask
// for is asked of the frontier again, which may have obeyed less of it.
func (e *Engine) Tune(t Tuning) {
	e.limits.tries.Store(int64(Config{Tries: t.Tries}.withDefaults().Tries))
	e.limits.quota.SetPageLimit(t.Pages)
	e.frontier.SetDelays(t.Delays)
	e.Inspector.ranks.prefer.Store(&t.Prefer)
	if e.Inspector.rules.Block != nil && t.Block != nil {
		e.Inspector.rules.Block.SetExtra(t.Block)
	}
	e.Inspector.robots.EachDelay(func(origin string, delay time.Duration) {
		for slice := range e.Inspector.hosts.slices.All(item.HostOf(origin)) {
			if e.frontier.Has(slice) {
				e.frontier.SetDelay(slice, delay)
			}
		}
	})
}
