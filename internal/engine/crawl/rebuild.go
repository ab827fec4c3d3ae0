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

// A Reentry admits URLs into a crawl that is not running, as if a page had just been fetched: known URLs are dropped,
// filtered ones are recorded, and the rest is queued.
type Reentry struct {
	b batch
	n int

	readmitted map[string]bool // URLs that Skipped has admitted
	hadQueue   map[string]bool // by slice: whether its queue was not empty at first

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

// Reenter calls feed with a Reentry, and then makes a checkpoint. It is called instead of Run, and ends in the same
// way.
func (e *Engine) Reenter(ctx context.Context, feed func(*Reentry) error) error {
	if e.resumed.broken != nil {
		return e.resumed.broken
	}
	e.Seeding.scopeSeeds.all = weburl.NewSet() // New makes no set for a large file
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

// Page admits the links of a fetched page.
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

// Item admits a URL as it was found.
func (r *Reentry) Item(ctx context.Context, it *item.Item) error {
	u, err := weburl.Parse(it.URL)
	if err != nil || u.Scheme() != "http" && u.Scheme() != "https" || u.Host() == "" {
		return nil //nolint:nilerr // not a URL that can be pending
	}
	it.Tries, it.Recrawl, it.QueueLast, it.Deferred, it.Refetch, it.Vain, it.Lift = 0, false, false, false, false, 0, 0
	if it.Kind != page.Seed && len(it.Path) > 0 { // classify appends the last hop again
		it.Path = it.Path[:len(it.Path)-1]
	}
	r.admission.classify(&r.b, u, *it, "", "")
	return r.commit(ctx)
}

// Seeds admits seeds as the user wrote them: the given ones, and those in the file of scope seeds.
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

// Root adds a URL to the scope seeds, unless it is one. A seed is also admitted as a URL.
func (r *Reentry) Root(ctx context.Context, it *item.Item) error {
	u, err := weburl.Parse(it.URL)
	if err != nil || u.Host() == "" {
		return nil //nolint:nilerr // not a URL that can have been fetched
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

const reenterStep = 200 // batches between commits

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

// Embeds admits the embedded resources of a page that was fetched before the crawl wanted these.
func (r *Reentry) Embeds(ctx context.Context, it *item.Item, pg *page.Page) error {
	if err := r.admission.addLinks(&r.b, it, pg); err != nil {
		return err
	}
	return r.commit(ctx)
}

// Deferred admits deferred URLs after the given rules were relaxed. URLs that are still filtered stay deferred.
func (r *Reentry) Deferred(ctx context.Context, rules []string) error {
	err := r.deferred.Read(0, func(s page.Skip, _ int64) error {
		if !slices.Contains(rules, s.Rule) {
			return nil
		}
		u, err := weburl.Parse(s.URL)
		if err != nil || !u.IsHTTP() {
			return nil //nolint:nilerr // not a URL that can be pending
		}
		it := itemOf(&s)
		if s.Rule == "embed" {
			kind, known := page.ParseKind(s.Why)
			if !known {
				return nil // not a kind of link that the rule defers
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

// itemOf returns an item for a skipped URL, with the page that linked to it. The hops to it are unknown, but its depth
// is known.
func itemOf(s *page.Skip) item.Item {
	return item.Item{URL: s.URL, From: s.From, Kind: page.Anchor, Depth: int32(s.Depth),
		Path: strings.Repeat("L", min(max(s.Depth-1, 0), entry.MaxPath-1))}
}

// Skipped admits a URL that was filtered at its visit: because its host had reached a limit, or as a trap.
func (r *Reentry) Skipped(ctx context.Context, s *page.Skip) error {
	u, err := weburl.Parse(s.URL)
	if err != nil || !u.IsHTTP() || r.readmitted[s.URL] {
		return nil //nolint:nilerr // not a URL that can be pending
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
	if had { // an earlier attempt may have admitted it
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
