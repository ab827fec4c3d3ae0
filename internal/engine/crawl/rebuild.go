package crawl

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/statefile"
)

// A Reentry lets URLs into a crawl that does not run, as if a page had just brought them: what is known is dropped,
// what is out of scope is left out, the rest waits.
type Reentry struct {
	b batch
	n int

	readmitted map[string]bool // URLs that Shed has let in
	hadQueue   map[string]bool // by slice: whether something waited there before

	known       *known
	hosts       *hosts
	scopeSeeds  *scopeSeeds
	seeding     *Seeding
	names       *names
	ranks       *ranking
	admission   *admission
	abandons    *abandoner
	deferred    *statefile.Deferred
	checkpoints *Checkpoints
	frontier    *frontier.Frontier
	ledger      *ledger.Ledger
}

// Reenter calls feed with the crawl's door, and then makes a checkpoint. It is called in place of Run, and ends like
// it.
func (e *Engine) Reenter(ctx context.Context, feed func(*Reentry) error) error {
	if e.resumed.broken != nil {
		return e.resumed.broken
	}
	e.Seeding.scopeSeeds.all = weburl.NewSet() // of a large file of roots, New does without
	if err := e.Seeding.scopeSeeds.load(); err != nil {
		return err
	}
	r := &Reentry{known: e.known, hosts: e.Inspector.hosts, scopeSeeds: e.Seeding.scopeSeeds, seeding: e.Seeding,
		names: e.abandons.admission.names, ranks: e.Inspector.ranks, admission: e.abandons.admission,
		abandons: e.abandons, deferred: e.skips.deferred.file, checkpoints: e.Checkpoints, frontier: e.frontier,
		ledger: e.ledger}
	if err := feed(r); err != nil {
		return err
	}
	if err := e.Checkpoints.resolvePending(ctx); err != nil {
		return err
	}
	if err := e.Checkpoints.lastCheckpoint(ctx); err != nil {
		return err
	}
	return e.ledger.Close()
}

// Page lets the links of a page in that was fetched.
func (r *Reentry) Page(ctx context.Context, it *item.Item, pg *page.Page) error {
	if it.Kind != page.Sitemap {
		r.ranks.beginPage(&r.b, it.URL, len(pg.Links))
		r.b.ranks.last = r.b.ranks.ofPage
	}
	if err := r.admission.addLinks(&r.b, it, pg); err != nil {
		return err
	}
	return r.commit(ctx)
}

// Item lets a URL in, as it was found.
func (r *Reentry) Item(ctx context.Context, it *item.Item) error {
	u, err := weburl.Parse(it.URL)
	if err != nil || u.Scheme() != "http" && u.Scheme() != "https" || u.Host() == "" {
		return nil //nolint:nilerr // it is none that waited
	}
	it.Tries, it.Recrawl, it.QueueLast, it.Deferred, it.Refetch, it.Vain, it.Lift = 0, false, false, false, false, 0, 0
	if it.Kind != page.Seed && len(it.Path) > 0 { // the last letter is put there again
		it.Path = it.Path[:len(it.Path)-1]
	}
	r.admission.classify(&r.b, u, *it, "", "")
	return r.commit(ctx)
}

// Seeds lets seeds in, as the user wrote them: those that are given, and those that the file of roots has.
func (r *Reentry) Seeds(ctx context.Context, seeds []weburl.URL) error {
	if err := r.seeding.admitSeeds(ctx, seeds, nil); err != nil {
		return err
	}
	return r.scopeSeeds.file.Each(func(known statefile.SeedEntry) error {
		u, err := weburl.Parse(known.URL)
		if err != nil || !known.Seed {
			return err
		}
		u = r.scopeSeeds.admitSeed(u)
		r.admission.classify(&r.b, u, item.FromSeed(u.String()), "", "")
		return r.commit(ctx)
	})
}

// Root makes a URL one of the crawl's roots, if it is none yet. A seed is let in, too.
func (r *Reentry) Root(ctx context.Context, it *item.Item) error {
	u, err := weburl.Parse(it.URL)
	if err != nil || u.Host() == "" {
		return nil //nolint:nilerr // it is none that was fetched
	}
	r.scopeSeeds.admit(u, it.Kind == page.Seed && r.scopeSeeds.asWritten())
	if err := r.ledger.Within(func() error { return r.scopeSeeds.add(it) }); err != nil {
		return err
	}
	if it.Kind == page.Seed {
		r.admission.classify(&r.b, u, item.FromSeed(u.String()), "", "")
	}
	return r.commit(ctx)
}

const reenterStep = 200 // batches between two commits

func (r *Reentry) commit(ctx context.Context) error {
	if err := r.abandons.commitBatch(&r.b, nil); err != nil {
		return err
	}
	r.b.reset()
	if r.n++; r.n%reenterStep > 0 {
		return nil
	}
	if err := errors.Join(ctx.Err(), r.ledger.Commit()); err != nil {
		return err
	}
	if r.known.full() || r.ledger.Written() > 64<<20 {
		return r.checkpoints.checkpoint(ctx)
	}
	return nil
}

// Embeds lets in what a page is shown with, which was fetched when nobody wanted that.
func (r *Reentry) Embeds(ctx context.Context, it *item.Item, pg *page.Page) error {
	if err := r.admission.addLinks(&r.b, it, pg); err != nil {
		return err
	}
	return r.commit(ctx)
}

// Deferred lets in what was set aside by rules that were loosened. What they still leave out stays where it is.
func (r *Reentry) Deferred(ctx context.Context, rules []string) error {
	err := r.deferred.Read(0, func(s page.Skip, _ int64) error {
		if !slices.Contains(rules, s.Rule) {
			return nil
		}
		u, err := weburl.Parse(s.URL)
		if err != nil || !u.IsHTTP() {
			return nil //nolint:nilerr // it is none that can wait
		}
		it := itemOf(&s)
		if s.Rule == "embed" {
			kind, known := page.ParseKind(s.Why)
			if !known {
				return nil // it is not what was loosened
			}
			it.Kind, it.Path = kind, strings.Repeat("L", min(s.Depth, entry.MaxPath-1))
		}
		r.admission.classify(&r.b, u, it, "", "")
		return r.commit(ctx)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// itemOf is a URL that was left out, as if it were found again where it was found. How it was reached is not known any
// more, but how far from a seed it lies.
func itemOf(s *page.Skip) item.Item {
	return item.Item{URL: s.URL, From: s.From, Kind: page.Anchor, Depth: int32(s.Depth),
		Path: strings.Repeat("L", min(max(s.Depth-1, 0), entry.MaxPath-1))}
}

// Skipped lets in again what was left out at its visit: because its host had its pages, or as a trap.
func (r *Reentry) Skipped(ctx context.Context, s *page.Skip) error {
	u, err := weburl.Parse(s.URL)
	if err != nil || !u.IsHTTP() || r.readmitted[s.URL] {
		return nil //nolint:nilerr // it is none that can wait
	}
	met, known, err := r.known.db.Get(s.URL)
	if err != nil || !known || !met.Fetched.IsZero() {
		return err
	}
	it := itemOf(s)
	if r.admission.rules.Judge(u, linkTo(&it)).Refused() {
		return nil
	}
	c := entry.Candidate{Host: r.names.intern(u.Host()), Item: it}
	slice := r.hosts.sliceOf(&c)
	if r.hadQueue == nil {
		r.hadQueue, r.readmitted = map[string]bool{}, map[string]bool{}
	}
	had, asked := r.hadQueue[slice]
	if !asked {
		host, met := r.frontier.Host(slice)
		had = met && host.Pending > 0
		r.hadQueue[slice] = had
	}
	if had { // an earlier attempt may have let it in
		if found, err := r.frontier.Inspector().Find(slice, s.URL); found != nil || err != nil {
			return err
		}
	}
	r.readmitted[s.URL] = true
	c.Item.Path = r.admission.path(it.Path, it.Kind)
	r.ranks.lift(&c.Item)
	r.ranks.rank(&c.Item)
	err = r.ledger.Within(func() error {
		var enc entry.Encoder
		enc.Found(&c.Item)
		r.ledger.Enqueue(enc.Writer)
		r.frontier.Push(slice, c.Item)
		return nil
	})
	if err != nil {
		return err
	}
	return r.commit(ctx)
}
