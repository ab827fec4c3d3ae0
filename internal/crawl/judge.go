package crawl

import (
	"kumo/internal/item"
	"kumo/internal/page"
	"kumo/internal/policy"
	"kumo/internal/seen"
)

// linkTo is what led to an item.
func linkTo(it *item.Item) policy.Link {
	return policy.Link{From: it.From, Kind: it.Kind, Depth: it.Depth, Redirects: it.Redirects, Seed: it.Root}
}

// stateFor is what a URL of that verdict is to be known as. What is left out can still be brought in: by a seed that
// names it, or by a scope that has grown.
func stateFor(v policy.Verdict) seen.State {
	if v.Rule == "" {
		return seen.Known
	}
	return seen.Deferred
}

// child is the item that a link on it leads to. A sitemap lies as deep as its entries, so that it is read when they are
// due, and only if they are.
func child(it *item.Item, l *page.Link) item.Item {
	c := item.Item{URL: l.URL, From: it.URL, Seed: it.Seed, Path: it.Path, Kind: l.Kind, Depth: it.Depth}
	switch {
	case l.Kind == page.Redirect:
		c.Redirects = it.Redirects + 1
		c.Root = it.Root
		if it.Kind == page.Sitemap {
			c.Kind = page.Sitemap // and is read as one
		}
	case !l.Kind.Embed() && it.Kind != page.Sitemap:
		c.Depth++
	}
	return c
}
