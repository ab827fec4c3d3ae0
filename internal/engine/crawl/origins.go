package crawl

import (
	"sync"

	"kumo/internal/base/bounded"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
)

// originLimits are the limits of failures in a row before an origin is abandoned. An origin that has answered before
// may also refuse connections for as long as Config.Patience.
var originLimits = visit.Limits{Refusals: 3, Silences: 10, Throttles: 10}

// maxSitemapOrigins bounds the origins in sitemapDepths. The sitemaps of a forgotten origin are offered again, but they
// are in seen.
const maxSitemapOrigins = 1 << 15

// origins tracks the health of the origins that a run has visited. Their answers are also evidence for the outage
// monitor.
type origins struct {
	*visit.Origins
	outages *outageMonitor

	mu            sync.Mutex                     // guards sitemapDepths
	sitemapDepths *bounded.Recent[uint64, int32] // least depth of a visit for which the origin's sitemaps were queued
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

// isNearest reports whether no earlier visit of an origin was as near to a seed; without a limit of depth, only the
// first visit counts.
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

// Reach returns how many origins this run has reached so far.
func (e *Engine) Reach() visit.Reach { return e.abandons.origins.Reach() }
