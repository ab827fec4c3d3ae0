package crawl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/engine/exchange"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
)

// Where links are claimed, the nodes that remember which URLs are known also remember when they are due again. They
// dispatch a due URL to the node that fetches its host then (TakeRevisits), and that node reports the next visit when it
// has finished this one (Parts.Revisit). So this node's URL database does not decide what is due. But what it has of a
// URL's earlier visits makes requests conditional, and so do the validators that come with the visit.

// A planned is the visit to a URL that follows the one that a batch ends.
type planned struct {
	last time.Time // the visit that ends
	meta seen.Meta // of the URL
}

// plannedAfter returns the visit after one that found d; nil if there is none, or other nodes do not remember it.
func (r *revisit) plannedAfter(v *item.Item, d *seen.Meta) *planned {
	if !r.cfg.Claims || d.Due.IsZero() || v.Refetches > 0 {
		return nil
	}
	p := &planned{last: later(r.cfg.Now(), r.before.Queued), meta: *d}
	if b := &r.before.Meta; d.Digest == [20]byte{} {
		p.meta.Status, p.meta.Digest, p.meta.Content = b.Status, b.Digest, b.Content
		p.meta.ETag, p.meta.Modified = b.ETag, b.Modified
	}
	return p
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// revisitOf returns a planned visit as other nodes remember it.
func (p *planned) revisitOf(it *item.Item) *item.Revisit {
	r := &item.Revisit{Number: uint64(max(p.last.Unix(), 1))}
	if !p.meta.Due.Before(policy.Never) {
		return r
	}
	m := seen.Meta{Fetched: p.last, Due: p.meta.Due, Every: p.meta.Every, Missing: p.meta.Missing}
	if p.meta.Digest != [20]byte{} {
		m.Status, m.Digest, m.Content = p.meta.Status, p.meta.Digest, p.meta.Content
		m.ETag, m.Modified = p.meta.ETag, p.meta.Modified
	}
	again := item.Item{URL: it.URL, From: it.From, Depth: it.Depth, Kind: it.Kind, ScopeSeed: it.ScopeSeed}
	if again.Kind == page.Seed && !again.ScopeSeed {
		again.Kind = page.Anchor
	}
	enc := entry.Encoder{Writer: seen.AppendMeta(nil, &m, 0)}
	enc.Candidate(&entry.Candidate{Host: it.Host(), Item: again})
	r.Data = enc.Writer
	return r
}

// readRevisit decodes the data of a visit. It returns false if that is invalid, as it may come from any node.
func readRevisit(r *item.Revisit) (m seen.Meta, c entry.Candidate, ok bool) {
	m, rest, ok := seen.ReadMeta(r.Data, 0)
	if !ok {
		return m, c, false
	}
	d := entry.NewDecoder(rest)
	c = d.Candidate()
	return m, c, d.Complete() && r.Number > 0 && c.Rule == "" && exchange.IsValid(&c.Item) && !c.Item.Refetch &&
		frontier.Belongs(c.Host, c.Item.URL)
}

// RevisitDue returns when a visit is due by this crawl's intervals; policy.Never if its data is invalid.
func (ds *Dispatches) RevisitDue(r *item.Revisit) time.Time {
	m, c, ok := readRevisit(r)
	if !ok {
		return policy.Never
	}
	return ds.cfg.Recrawl.IntervalFor(c.Item.URL).Due(visitsOf(&m))
}

// Revisits reports whether URLs are visited again in this crawl, and whether that goes on when all that were due at its
// start were visited.
func (ds *Dispatches) Revisits() (enabled, continuous bool) {
	return ds.cfg.Recrawl.Enabled(), ds.cfg.Recrawl.Continuous
}

// TakeRevisits is TakeDispatched for visits to URLs that were visited before, by this node or others. Those that this
// node has made are not done until they have been reported again, which it causes.
func (ds *Dispatches) TakeRevisits(ctx context.Context, all []item.Revisit) (done []bool, err error) {
	if ds.claims == nil || ds.known.db == nil {
		return nil, errNoClaims
	}
	if err := ds.holds.admit(ctx); err != nil {
		return nil, err
	}
	b := ds.pool.acquire()
	defer ds.pool.put(b)
	sequence, done, err := ds.commitRevisits(b, all)
	if err == nil {
		err = ds.ledger.WaitDurable(ctx, sequence)
	}
	if err != nil {
		return nil, err
	}
	return done, nil
}

// A dueURL is a visit that this node is to make.
type dueURL struct {
	number uint64
	meta   seen.Meta // from the node that made the visit before
	met    seen.Entry
	c      entry.Candidate
	tenure int
}

func (ds *Dispatches) commitRevisits(b *batch, all []item.Revisit) (sequence uint64, done []bool, err error) {
	ds.claims.tenureLock.Lock()
	defer ds.claims.tenureLock.Unlock()
	due, done, err := ds.lookUpRevisits(all)
	if err != nil {
		return 0, nil, err
	}
	ours := false
	err = ds.abandons.commitBatch(b, func() error {
		ours = !slices.ContainsFunc(due, func(u dueURL) bool { return !ds.hosts.ours(ds.hosts.sliceOf(&u.c)) })
		if !ours {
			return nil
		}
		b.routed = true
		for i := range due {
			ds.queueRevisit(b, &due[i])
		}
		if err := ds.batches.apply(b); err != nil {
			return err
		}
		sequence = ds.ledger.Sequence()
		return nil
	})
	if err == nil && !ours {
		err = ErrNotOurs
	}
	return sequence, done, err
}

// lookUpRevisits returns the visits that this node has not made and does not have in its queues, and reports for each
// of all whether it can never be made.
func (ds *Dispatches) lookUpRevisits(all []item.Revisit) (due []dueURL, done []bool, err error) {
	added, claimed := map[string]bool{}, ds.outbox.Earlier() == 0
	for i := range all {
		m, c, ok := readRevisit(&all[i])
		done = append(done, !ok)
		if !ok || added[c.Item.URL] {
			continue
		}
		added[c.Item.URL] = true
		slice := ds.hosts.sliceOf(&c)
		u := dueURL{number: all[i].Number, meta: m, c: c, tenure: ds.claims.tenures.Of(slice)}
		if u.met, _, err = ds.known.db.Get(c.Item.URL); err != nil {
			return nil, nil, err
		}
		switch {
		case ds.claims.isUnreported(slice, c.Item.URL):
		case u.isMade():
			ds.claims.reportAgain(slice, &u.met, c.Item, claimed)
		case !u.met.Waits() || uint64(u.met.Queued.Unix()) <= u.number || u.met.Tenure != u.tenure:
			due = append(due, u)
		}
	}
	return due, done, nil
}

// isMade reports whether this node has made the visit.
func (u *dueURL) isMade() bool {
	after := func(t time.Time) bool { return !t.IsZero() && t.Unix() > 0 && uint64(t.Unix()) > u.number }
	return !u.met.Waits() && !u.met.Due.IsZero() && (after(u.met.Queued) || after(u.met.Fetched))
}

// queueRevisit queues a visit. It is called within the ledger's gate.
func (ds *Dispatches) queueRevisit(b *batch, u *dueURL) {
	// later than the visit before, whatever the clock of the node that made that: the visit's own number follows from it
	queued := later(ds.cfg.Now(), time.Unix(int64(u.number)+1, 0))
	meta := seen.Meta{Queued: queued, Tenure: u.tenure}
	if u.met.Fetched.IsZero() || uint64(max(u.met.Fetched.Unix(), 0)) < u.number { // another node made that
		meta.Due, meta.Every, meta.Missing = u.meta.Due, u.meta.Every, u.meta.Missing
		meta.Status, meta.Digest, meta.Content = u.meta.Status, u.meta.Digest, u.meta.Content
		meta.ETag, meta.Modified = u.meta.ETag, u.meta.Modified
	} else {
		meta.Due, meta.Every, meta.Missing = u.met.Due, u.met.Every, u.met.Missing
	}
	if meta.Due.After(queued) {
		meta.Due = queued // dispatched early, as the interval has become shorter: it is pending (see seen.Meta.Waits)
	}
	f := u.c
	f.Item.URL = strings.Clone(u.c.Item.URL)
	f.Host = ds.names.intern(u.c.Host)
	f.Item.Recrawl = true
	f.Item.ScopeSeed = ds.scopeSeeds.all.Has(f.Item.URL)
	if u.met.State == seen.Unknown {
		ds.known.db.InsertKnown([]seen.URL{{URL: f.Item.URL, Depth: f.Item.Depth, State: seen.Known}})
	}
	ds.known.db.UpdateMeta(f.Item.URL, meta)
	b.entries.Recrawl(&f.Item, queued)
	b.found = append(b.found, f)
}

// reportAgain reports the next visit to a URL, whose last visit is over but may not have been reported.
func (c *claims) reportAgain(host string, met *seen.Entry, it item.Item, claimed bool) {
	p := planned{last: later(met.Fetched, met.Queued), meta: met.Meta}
	it.URL = strings.Clone(it.URL) // from a batch
	c.addEarlier(&finishedURL{host: host, url: it.URL, key: it.Key(), revisit: p.revisitOf(&it)}, claimed)
}

// maxOldVisits bounds the unreported visits of URLs that were visited without recrawls.
const maxOldVisits = 10_000

// reportUnplanned reports the visits that this node has made in crawls without recrawls, of whose URLs other nodes only
// remember that they are done. When it ends, all are reported or unreported (see claims).
func (s *recrawls) reportUnplanned(ctx context.Context) error {
	r := &s.cfg.Recrawl
	unplanned := func(m *seen.Meta) bool { return m.Due.IsZero() && !m.Fetched.IsZero() && !m.Waits() }
	for e, err := range s.known.db.Visited(unplanned) {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		next := r.IntervalFor(e.URL).Due(visitsOf(&e.Meta))
		u, err := weburl.Parse(e.URL)
		if err != nil || !u.IsHTTP() || !e.Due.IsZero() || !next.Before(policy.Never) {
			continue
		}
		it := item.Item{URL: e.URL, From: e.From, Depth: e.Depth, Kind: page.Kind(e.Kind),
			ScopeSeed: s.scopeSeeds.all.Has(e.URL)}
		link := linkTo(&it)
		link.Fetched = true
		if s.rules.JudgeURL(u, link).Refused() || s.rules.TooDeep(u, it.Depth) {
			continue
		}
		p := planned{last: e.Fetched, meta: e.Meta}
		p.meta.Due = next
		s.claims.addEarlier(&finishedURL{host: s.hosts.sliceOf(&entry.Candidate{Host: u.Host(), Item: it}), url: e.URL,
			key: e.URL, revisit: p.revisitOf(&it)}, true)
		for s.claims.unreportedCount() > maxOldVisits {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

func (c *claims) unreportedCount() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, all := range c.unreported {
		n += len(all)
	}
	return n
}

// reportOldVisits replaces keepRequeuing where links are claimed. The nodes that remember the URLs then dispatch due
// visits, so only visits of crawls without recrawls are left to report.
func (s *recrawls) reportOldVisits(ctx context.Context) error {
	err := s.reportUnplanned(ctx)
	switch {
	case canceled(err):
		return nil
	case err != nil:
		return fmt.Errorf("find URLs that were visited without --recrawl: %w", err)
	}
	if !s.cfg.Recrawl.Continuous {
		s.complete.Store(1 + s.arrivals.count.Load())
	}
	return nil
}
