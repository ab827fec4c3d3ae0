package links

import (
	"context"
	"errors"
	"path/filepath"

	"kumo/internal/base/extsort"
)

// A Query collects links in a pass over the pages, and then reports its results. It is used once.
type Query struct {
	sorter *extsort.Sorter
	visit  func(*pageLinks, *outlink) error
	finish func(context.Context) error
}

// queryMemory is the memory of a query for sorting, in bytes.
const queryMemory = 32 << 20

// newQuery returns a query with a sorter in a folder of its own.
func (f *Finder) newQuery(name string, combine extsort.Combine) *Query {
	return &Query{sorter: extsort.New(extsort.Config{Disk: f.cfg.Disk, Dir: filepath.Join(f.temp, name),
		Memory: queryMemory, Combine: combine})}
}

// Run passes the links of each page's last visit to the queries, and then reports the results of each query in turn.
func (f *Finder) Run(ctx context.Context, queries ...*Query) (err error) {
	defer func() {
		for _, q := range queries {
			if q.sorter != nil {
				err = errors.Join(err, q.sorter.Close())
			}
		}
	}()
	err = f.eachPage(ctx, func(p *pageLinks) error {
		for l := range p.links() {
			l.to = f.canonical(&l)
			for _, q := range queries {
				if err := q.visit(p, &l); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, q := range queries {
		if err == nil {
			err = q.finish(ctx)
		}
	}
	return err
}

// EachLink returns a query that calls f with each link of the pages' last visits: page, canonical target and kind.
func (f *Finder) EachLink(call func(from, to, kind string) error) *Query {
	return &Query{visit: func(p *pageLinks, l *outlink) error { return call(p.url, l.to, l.kind) },
		finish: func(context.Context) error { return nil }}
}
