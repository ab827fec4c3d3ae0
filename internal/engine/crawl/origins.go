package crawl

import (
	"sync"

	"kumo/internal/base/bounded"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
)

// originLimits are what an origin may do in a row before it is abandoned. One that had answered may also refuse for as
// long as Config.Patience.
var originLimits = visit.Limits{Refusals: 3, Silences: 10, Throttles: 10}

// maxSitemapOrigins bounds the origins whose sitemaps were taken in. Those of a forgotten one are offered again, though seen
// knows them.
const maxSitemapOrigins = 1 << 15

// origins has the health of the origins that a run has met. What they answer is also evidence about the line.
type origins struct {
	*visit.Origins
	outages *outageMonitor

	mu            sync.Mutex                     // guards listed
	sitemapDepths *bounded.Recent[uint64, int32] // how deep the visits were for which sitemaps were taken in
}

func newOrigins(cfg *Config, l *outageMonitor) *origins {
	return &origins{Origins: visit.NewOrigins(originLimits, cfg.Now), outages: l,
		sitemapDepths: bounded.NewRecent[uint64, int32](maxSitemapOrigins)}
}

// judge counts the outcome of a visit, and reports whether its origin is to be abandoned.
func (o *origins) judge(origin string, v *frontier.Visit, f *visitOutcome) (visit.Abandonment, bool) {
	if f.Outcome == frontier.Answered && !f.arrived.IsZero() {
		defer o.outages.worked(f.arrived, origin, o.Hash(origin))
	}
	return o.Judge(origin, v.Started, &f.Verdict, f.excused)
}

// isNearest reports whether no visit of an origin lay as near to a seed before; without a limit only the first one
// counts.
func (o *origins) isNearest(origin string, depth int32, limited bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := o.Hash(origin)
	least, known := o.sitemapDepths.Get(key)
	if known && (depth >= least || !limited) {
		return false
	}
	o.sitemapDepths.Put(key, depth)
	return true
}

// Reach is what this run has reached so far.
func (e *Engine) Reach() visit.Reach { return e.abandons.origins.Reach() }
