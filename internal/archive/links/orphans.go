package links

import (
	"context"
	"errors"

	"kumo/internal/base/page"
)

// An Orphan is a URL of a sitemap that no page of the crawl links to.
type Orphan struct {
	URL    string `json:"url"`
	Status int    `json:"status,omitempty"` // of the response after redirects; 0 if there is none
	// Error is why there is no usable response, or why the URL was not fetched, as in a Chain.
	Error     string   `json:"error,omitempty"`
	Redirects []string `json:"redirects,omitempty"` // targets of the redirects, in order
	Sitemap   string   `json:"sitemap"`             // the first, in the order of their URLs
}

// ErrNoRecords means that a question needs the links of all pages, which only WARC files have.
var ErrNoRecords = errors.New("the crawl has no WARC files here, and only they have the links of all pages")

// Orphans calls tell with the URLs in sitemaps that no page of the crawl links to, sorted by URL: fetched or not.
func (f *Finder) Orphans(ctx context.Context, tell func(*Orphan) error) error {
	if !f.HasRecords() {
		return ErrNoRecords
	}
	return f.Run(ctx, f.OrphanQuery(tell))
}

// HasRecords reports whether the crawl has WARC files, which have the links of all pages.
func (f *Finder) HasRecords() bool {
	files, err := f.records()
	return err == nil && len(files) > 0
}

// Marks of an orphan query's values.
const (
	markLinked = 'a'
	markListed = 'b' // followed by the sitemap's URL
)

// recentLinks is the number of link targets that an orphan query remembers, to write those of menus only once.
const recentLinks = 1 << 20

// OrphanQuery returns the query of [Finder.Orphans]. Not links are entries of feeds, canonical URLs, links to other
// languages, and links of a page to itself: none of them leads a visitor to a page.
func (f *Finder) OrphanQuery(tell func(*Orphan) error) *Query {
	q := f.newQuery("orphans", nil)
	recent := make([]uint64, recentLinks)
	var value []byte
	q.visit = func(p *pageLinks, l *outlink) error {
		switch kind, known := page.ParseKind(l.kind); {
		case known && kind == page.Listed:
			value = append(append(value[:0], markListed), p.url...)
			return q.sorter.Add(0, []byte(l.to), value)
		case !known || !leads(kind) || l.to == p.url:
			return nil
		}
		h := f.known.hash(l.to)
		if at := &recent[h%recentLinks]; *at != h {
			*at = h
			return q.sorter.Add(0, []byte(l.to), []byte{markLinked})
		}
		return nil
	}
	q.finish = func(ctx context.Context) error { return f.reportOrphans(ctx, q, tell) }
	return q
}

// leads reports whether links of a kind lead visitors to their target, or show it to them.
func leads(kind page.Kind) bool {
	switch kind {
	case page.Anchor, page.Frame, page.Refresh, page.Redirect, page.Form:
		return true
	}
	return kind.Embed() && kind != page.Ping
}

func (f *Finder) reportOrphans(ctx context.Context, q *Query, tell func(*Orphan) error) error {
	batch := make([]*Orphan, 0, orphansAtOnce)
	flush := func() error {
		err := f.resolveOrphans(ctx, batch)
		for _, o := range batch {
			if err == nil {
				err = tell(o)
			}
		}
		batch = batch[:0]
		return err
	}
	err := q.sorter.EachKey(ctx, func(key, value []byte) error { // links come first
		if value[0] == markLinked {
			return nil
		}
		batch = append(batch, &Orphan{URL: string(key), Sitemap: string(value[1:])})
		if len(batch) == orphansAtOnce {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// orphansAtOnce is the number of orphans whose outcomes are looked up in one pass over crawl.log. They take some 200
// bytes each.
const orphansAtOnce = 250_000

// resolveOrphans sets the outcomes of orphans.
func (f *Finder) resolveOrphans(ctx context.Context, all []*Orphan) error {
	found := map[uint64]outcome{}
	end := func(o *Orphan) string {
		if n := len(o.Redirects); n > 0 {
			return o.Redirects[n-1]
		}
		return o.URL
	}
	for _, o := range all {
		c := f.known.end(o.URL)
		if o.Status, o.Error, o.Redirects = c.status, c.reason, c.hops; o.Status == 0 && o.Error == "" {
			found[f.known.hash(end(o))] = outcome{}
		}
	}
	if err := f.resolve(ctx, found); err != nil {
		return err
	}
	for _, o := range all {
		if o.Status == 0 && o.Error == "" {
			out := f.outcomeOf(end(o), found)
			o.Status, o.Error = out.status, out.reason
		}
	}
	return nil
}
