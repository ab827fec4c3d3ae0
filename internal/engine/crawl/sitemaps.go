package crawl

import (
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
)

const (
	guessedSitemap = "/sitemap.xml"
	maxSitemaps    = 1000 // that a robots.txt names
	maxNested      = 4    // lists on the way to a list, redirects among them
)

// addSitemaps takes in the sitemaps that the rules of an origin name, for the visit that is about to obey them. That is
// done once, and again for a visit that lies nearer to its seed, from where more entries are within reach.
func (w *worker) addSitemaps(v *frontier.Visit, origin string, rules *robots.Rules) error {
	if w.visits.cfg.Sitemaps == policy.SitemapsIgnored || v.Kind == page.Sitemap ||
		!w.visits.outcomes.origins.isNearest(origin, v.Depth, w.visits.known.depths) {
		return nil
	}
	base, err := weburl.Parse(origin + robotsPath)
	if err != nil {
		return nil //nolint:nilerr // cannot be: origins come from parsed URLs
	}
	if scope := w.visits.admission.rules.InScope(base); !scope.In && !scope.Near {
		return nil // of another site only what pages are shown with is fetched
	}
	named := rules.Sitemaps()
	if len(named) == 0 && w.visits.cfg.Sitemaps == policy.SitemapsGuessed {
		named = []string{guessedSitemap}
	}
	if len(named) == 0 {
		return nil
	}
	var links []page.Link
	for _, ref := range named[:min(len(named), maxSitemaps)] {
		if to, err := base.Resolve(ref); err == nil && to.Web() {
			links = append(links, page.Link{URL: to.Canonical().String(), Kind: page.Sitemap})
		}
	}
	from := item.Item{URL: base.String(), Seed: v.Seed, Path: w.visits.gate.names.intern(v.Path + "P"), Depth: v.Depth}
	if err := w.visits.admission.addLinks(&w.batch, &from, &page.Page{Links: links}); err != nil {
		return err
	}
	if err := w.visits.abandons.commitBatch(&w.batch); err != nil {
		return err
	}
	w.batch.reset()
	return nil
}

// addGuesses takes in /sitemap.xml of the seeds' hosts, for a crawl that reads no robots.txt.
func (a *admission) addGuesses(b *batch, seeds []weburl.URL) {
	for _, u := range seeds {
		if to, err := u.Resolve(guessedSitemap); err == nil {
			seed := u.String()
			a.classify(b, to, item.Item{URL: to.String(), From: seed, Seed: seed, Kind: page.Sitemap, Depth: 1}, "", "")
		}
	}
}
