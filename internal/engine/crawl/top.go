package crawl

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ranker"
	"kumo/internal/state/seen"
)

// A Ranking is how important a URL is.
type Ranking struct {
	Order      string // its name
	Importance float64
	ByLinks    bool     // the order goes by links
	Rules      []string // of the user's that make it more or less so than the order says
	// by what it is multiplied where the URL waits, by the user's rules and a sitemap's priority as they were when it was
	// found; 1 where it does not wait
	Factor  float64
	Sitemap bool // a part of Factor is a sitemap's
}

// explain says how important a URL is. it is what waits; nil if nothing does.
func (r *ranking) explain(url string, depth int32, it *item.Item) *Ranking {
	prefer := *r.prefer.Load()
	x := &Ranking{Order: r.Name, Importance: r.importanceNow(url, depth), ByLinks: r.Links != nil,
		Rules: prefer.Rules(url), Factor: 1}
	if it != nil {
		x.Factor = rank.Lift(it.Lift).Factor()
		x.Sitemap = it.Kind == page.Listed && it.Lift != liftOf(prefer.Lift(url))
	}
	return x
}

// queuedItem is the item of the URL that is yet to be fetched, wherever it waits; nil if there is none.
func (x *Explanation) queuedItem() *item.Item {
	if x.Found != nil {
		return &x.Found.Item
	}
	return cmp.Or(x.Abandoned, x.Pending)
}

// importanceNow is a known URL's importance by any order.
func (r *ranking) importanceNow(url string, depth int32) float64 {
	if r.Links == nil {
		return r.Order.Importance(r.idOf(url), depth)
	}
	if e, known := r.Links.Explain(ranker.URL{Key: r.Links.KeyOf(url), Depth: depth}); known {
		return e.Importance
	}
	return 1
}

// An Important is a URL that is more important than others, or with its site all that is known there.
type Important struct {
	seen.Entry
	Importance float64
	Site       string  // the URL's scheme and host
	URLs       int     // known of the site
	Waiting    int     // of these, those that were not visited
	Sum        float64 // of their importances
}

// topStep is how many URLs are gone through until the context is asked.
const topStep = 4096

// errNoKnown is a crawl that keeps nothing.
var errNoKnown = errors.New("a crawl without a folder does not list what it knows")

// Top gives the n most important of the known URLs, or, with bySite, of each site the most important, the n first of
// these. It goes through all known URLs.
func (i *Inspector) Top(ctx context.Context, n int, bySite bool) (all []Important, err error) {
	if i.known.db == nil {
		return nil, errNoKnown
	}
	if err := i.keeper.ensureRanks(ctx); err != nil {
		return nil, err
	}
	t := top{n: n}
	at := 0
	var site *Important
	for known, err := range i.known.db.Scan("") {
		if at++; at%topStep == 0 && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if known.State != seen.Known {
			continue
		}
		one := Important{Entry: known, Importance: i.ranks.importanceNow(known.URL, known.Depth),
			Site: item.OriginOf(known.URL)}
		if !bySite {
			t.add(&one)
			continue
		}
		if site == nil || site.Site != one.Site {
			t.add(site)
			site = &one
		}
		if site.URLs++; known.Fetched.IsZero() {
			site.Waiting++
		}
		site.Sum += one.Importance
		if one.Importance > site.Importance {
			site.Entry, site.Importance = one.Entry, one.Importance
		}
	}
	t.add(site)
	return t.cut(), nil
}

// A top keeps the most important, and twice as many while more come.
type top struct {
	n   int
	all []Important
}

func (t *top) add(i *Important) {
	if i == nil {
		return
	}
	if t.all = append(t.all, *i); len(t.all) >= 2*t.n+64 {
		t.cut()
	}
}

func (t *top) cut() []Important {
	slices.SortStableFunc(t.all, func(a, b Important) int { return cmp.Compare(b.Importance, a.Importance) })
	clear(t.all[min(t.n, len(t.all)):])
	t.all = t.all[:min(t.n, len(t.all))]
	return t.all
}
