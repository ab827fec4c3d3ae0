package crawl

import (
	"fmt"

	"kumo/internal/frontier"
	"kumo/internal/page"
	"kumo/internal/robots"
	"kumo/internal/weburl"
)

// Sitemaps says which sitemaps a crawl reads.
type Sitemaps uint8

// The choices.
const (
	SitemapsNamed   Sitemaps = iota // those that robots.txt names
	SitemapsGuessed                 // and /sitemap.xml where it names none
	SitemapsIgnored                 // none
)

var sitemapsNames = [...]string{"named", "guess", "ignore"}

// ParseSitemaps reads a choice's name: named, guess or ignore.
func ParseSitemaps(name string) (Sitemaps, error) {
	for i, n := range sitemapsNames {
		if n == name {
			return Sitemaps(i), nil
		}
	}
	return 0, fmt.Errorf("sitemaps %q: not one of named, guess, ignore", name)
}

// SitemapsNames are the names of the choices.
func SitemapsNames() []string { return sitemapsNames[:] }

func (s Sitemaps) String() string { return sitemapsNames[s] }

const (
	guessedSitemap = "/sitemap.xml"
	maxSitemaps    = 1000     // that a robots.txt names
	maxSitemap     = 50 << 20 // bytes, as the sitemap protocol has it
)

// addSitemaps takes in the sitemaps of the host whose rules came from v, which is at u.
func (w *worker) addSitemaps(v *frontier.Visit, u weburl.URL, rules *robots.Rules) {
	named := rules.Sitemaps()
	if len(named) == 0 && w.cfg.Sitemaps == SitemapsGuessed {
		named = []string{v.Robots + guessedSitemap}
	}
	if w.cfg.Sitemaps == SitemapsIgnored {
		return
	}
	var links []page.Link
	for _, ref := range named[:min(len(named), maxSitemaps)] {
		if to, err := u.Resolve(ref); err == nil {
			links = append(links, page.Link{URL: to.Canonical().String(), Kind: page.Sitemap})
		}
	}
	w.addLinks(&w.batch, &v.Item, &page.Page{Links: links})
}

// guessSitemaps takes in /sitemap.xml of the seeds' hosts, for a crawl that reads no robots.txt.
func (e *Engine) guessSitemaps(seeds []weburl.URL) error {
	var b batch
	for _, u := range seeds {
		if to, err := u.Resolve(guessedSitemap); err == nil {
			seed := u.String()
			e.consider(&b, to, frontier.Item{URL: to.String(), From: seed, Seed: seed, Kind: page.Sitemap}, "")
		}
	}
	e.offer(&b, "")
	return e.take(&b, nil, nil)
}
