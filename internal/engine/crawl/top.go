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

// A Ranking is the importance of a URL and its causes.
type Ranking struct {
	Order      string // name of the order
	Importance float64
	ByLinks    bool     // the order uses links
	Rules      []string // rules of the user that change the URL's importance
	// multiplies the importance in the queue: by the user's rules and the sitemap's priority of when the URL was found;
	// 1 if it is not pending
	Factor  float64
	Sitemap bool // a part of Factor comes from a sitemap
}

// explain returns the importance of a URL. it is the pending item, nil if there is none.
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

// queuedItem returns the pending item of the URL, wherever it is; nil if there is none.
func (x *Explanation) queuedItem() *item.Item {
	if x.Found != nil {
		return &x.Found.Item
	}
	return cmp.Or(x.Abandoned, x.Pending)
}

// importanceNow returns the current importance of a known URL, for any order.
func (r *ranking) importanceNow(url string, depth int32) float64 {
	if r.Links == nil {
		return r.Order.Importance(r.idOf(url), depth)
	}
	if e, known := r.Links.Explain(ranker.URL{Key: r.Links.KeyOf(url), Depth: depth}); known {
		return e.Importance
	}
	return 1
}

// An Important is one of the most important URLs, or, by site, a site's most important URL with totals of the site.
type Important struct {
	seen.Entry
	Importance float64
	Site       string  // scheme and host of the URL
	URLs       int     // known URLs of the site
	Waiting    int     // of these, URLs that were not visited
	Sum        float64 // of their importances
}

// topStep is the number of URLs between checks of the context.
const topStep = 4096

// errNoKnown means that the crawl has no URL database.
var errNoKnown = errors.New("a crawl without a folder keeps no list of known URLs")

// Top returns the n most important known URLs. With bySite, it returns the most important URL of each site, for the n
// sites where that URL is most important. It goes through all known URLs.
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

// A top collects the n most important URLs. It holds up to about twice as many between cuts.
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
