package crawl

import (
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
)

// addSitemaps admits the sitemaps in the rules of an origin, for the visit that is about to obey these. This is done
// once, and again for a visit that is nearer to its seed, as more entries are then within the depth limit.
func (w *worker) addSitemaps(v *frontier.Visit, origin string, rules *robots.Rules) error {
	if w.visits.cfg.Sitemaps == policy.SitemapsIgnored || v.Kind == page.Sitemap ||
		!w.visits.outcomes.origins.isNearest(origin, v.Depth, w.visits.known.depths) {
		return nil
	}
	base, all := visit.Sitemaps(origin, rules, w.visits.cfg.Sitemaps)
	if len(all) == 0 {
		return nil
	}
	if scope := w.visits.admission.rules.InScope(base); !scope.In && !scope.OnSeedHost {
		return nil // of other sites, only embedded resources are fetched
	}
	links := make([]page.Link, len(all))
	for i, to := range all {
		links[i] = page.Link{URL: to.String(), Kind: page.Sitemap}
	}
	from := item.Item{URL: base.String(), Seed: v.Seed, Path: w.visits.gate.names.intern(v.Path + "P"), Depth: v.Depth}
	if err := w.visits.admission.addLinks(&w.batch, &from, &page.Page{Links: links}); err != nil {
		return err
	}
	if err := w.visits.abandons.commitBatch(&w.batch, nil); err != nil {
		return err
	}
	w.batch.reset()
	return nil
}

// addGuesses adds /sitemap.xml of the seeds' hosts, for a crawl that reads no robots.txt.
func (a *admission) addGuesses(b *batch, seeds []weburl.URL) {
	for _, u := range seeds {
		if to, err := u.Resolve(visit.GuessedSitemap); err == nil {
			seed := u.String()
			a.classify(b, to, item.Item{URL: to.String(), From: seed, Seed: seed, Kind: page.Sitemap, Depth: 1}, "", "")
		}
	}
}
