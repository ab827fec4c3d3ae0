package crawl

import (
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/content/policy"
	"kumo/internal/state/entry"
	"kumo/internal/state/rank"
)

// linkTo is what led to an item.
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
		l.Path = "" // its end is not that of the way
	}
	return l
}

// child is the item that a link on it leads to. A sitemap lies as deep as its entries, so that it is read when they are
// due, and only if they are.
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
			c.Kind = page.Sitemap // and is read as one
		}
	case !l.Kind.Embed() && it.Kind != page.Sitemap:
		c.Depth++
	}
	return c
}
