package crawl

import (
	"time"

	"kumo/internal/base/item"
	"kumo/internal/content/policy"
	"kumo/internal/state/frontier"
	"kumo/internal/state/rank"
)

// Tuning is the set of settings that can change while a crawl runs.
type Tuning struct {
	frontier.Delays
	Tries  int   // 0: default
	Pages  int64 // limit of all runs together; 0: unlimited
	Prefer rank.Preferences
	Block  *policy.BlockRules // in addition to those of a file
}

// Tune changes the settings of a running crawl. New preferences apply to URLs that are found from now on; new blocks
// apply to pending URLs, too, when they would be visited. Delays of robots.txt files are applied again, as an earlier
// limit may have shortened them.
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
