package crawl

import (
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/content/policy"
	"kumo/internal/state/entry"
	"kumo/internal/state/rank"
)

// linkTo returns the link that led to an item.
func linkTo(it *item.Item) policy.Link {
	l := policy.Link{
		From:      it.From,
		Kind:      it.Kind,
		Depth:     it.Depth,
		Redirects: it.Redirects,
		Seed:      it.ScopeSeed,
		Path:      it.Path,
	}
	if len(l.Path) >= entry.MaxPath {
		l.Path = "" // the path was cut, so its end is not the last hop
	}
	return l
}

// child returns the item for a link on it. A sitemap gets the depth of its entries, so that it is read when they may be
// fetched, and only then.
func child(it *item.Item, l *page.Link) item.Item {
	c := item.Item{URL: l.URL, From: it.URL, Seed: it.Seed, Path: it.Path, Kind: l.Kind, Depth: it.Depth,
		Vain: it.Vain}
	if l.Kind == page.Listed {
		c.Lift = int8(rank.OfSitemap(float64(l.Priority)))
	}
	switch {
	case l.Kind == page.Redirect:
		c.Redirects = it.Redirects + 1
		c.ScopeSeed = it.ScopeSeed
		if it.Kind == page.Sitemap {
			c.Kind = page.Sitemap // the target is parsed as a sitemap, too
		}
	case !l.Kind.Embed() && it.Kind != page.Sitemap:
		c.Depth++
	}
	return c
}
