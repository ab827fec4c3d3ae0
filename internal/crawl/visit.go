package crawl

import (
	"context"
	"crypto/sha1"
	"errors"
	"net/http"
	"time"

	"kumo/internal/fetch"
	"kumo/internal/frontier"
	"kumo/internal/page"
	"kumo/internal/parse"
	"kumo/internal/seen"
	"kumo/internal/stats"
	"kumo/internal/weburl"
)

// A worker visits one URL at a time.
type worker struct {
	*Engine
	*desk  // nil unless there is an answer to be read
	seated bool
	resp   page.Response
	batch  batch
	was    was
}

// maxInflated bounds a body without its content coding: four times what an answer may have over the wire, at least this.
const maxInflated = 64 << 20

// visit takes a URL through its life. An error ends the crawl; what goes wrong with a URL is recorded.
func (w *worker) visit(ctx context.Context, v *frontier.Visit) error {
	w.batch.reset()
	w.was = was{}
	defer w.rise()
	if !w.isOurs(v) {
		return nil
	}
	if w.cfg.Depth >= 0 && v.Robots == "" { // it may have been met nearer since it was queued
		state, depth, err := w.seen.Look(v.URL)
		if err != nil {
			return err
		}
		if state != seen.Unknown {
			v.Depth = depth
		}
	}
	v.Told = v.Told || w.wasTold(v.URL)
	u, err := weburl.Parse(v.URL)
	if err != nil {
		return w.leave(v, "url", err.Error())
	}
	if v.Robots != "" {
		return w.visitRobots(ctx, v, u)
	}
	if l, ok := w.isLost(u.Origin()); ok {
		if err := w.forsake(v.Host, v.Item, l, v.URL); err != nil {
			return err
		}
		return w.done(v, fate{})
	}
	ok, err := w.allowed(v, u)
	if err != nil || !ok || !w.turn(ctx, v, u) {
		return err
	}
	return w.fetch(ctx, v, u)
}

// allowed asks the rules that a URL may meet only now. When it returns false, the visit is over.
func (w *worker) allowed(v *frontier.Visit, u weburl.URL) (bool, error) {
	if why := w.block.Match(u); why != "" {
		return false, w.leave(v, "block", why)
	}
	if w.tooDeep(v.Depth) {
		return false, w.leave(v, "depth", "the limit was lowered")
	}
	if !w.cfg.IgnoreRobots {
		rules, known := w.rules.Get(u.Origin())
		if !known {
			w.wantRobots(v, u)
			return false, nil
		}
		if ok, line := rules.Allowed(u.RequestURI()); !ok {
			return false, w.leave(v, "robots", line)
		}
		if err := w.addSitemaps(v, u.Origin(), rules); err != nil {
			return false, err
		}
		if clean := rules.Clean(v.URL); clean != v.URL && !(v.Redirects > 0 && rules.Clean(v.From) == clean) {
			return false, w.leaveFor(v, clean) // but where the site redirects to the longer form, that is its page
		}
	}
	if v.Recrawl {
		return true, nil // limits count pages, not visits
	}
	switch w.quota.take(v.Host) {
	case notNow:
		w.frontier.Postpone(v, 50*time.Millisecond)
		return false, nil
	case used:
		w.stop(w.pagesReached())
		w.frontier.Postpone(v, 0)
		return false, nil
	case hostUsed:
		return false, w.shed(v)
	}
	return true, nil
}

// turn waits for the node's own rate, and takes the visit's turn at its server's address. When it returns false, the visit
// is over.
func (w *worker) turn(ctx context.Context, v *frontier.Visit, u weburl.URL) bool {
	addr, err := w.fetcher.Resolve(ctx, u.Hostname(), u.Port())
	if err == nil && !w.frontier.Reserve(v, addr) {
		w.giveBack(v)
		return false
	}
	if w.limiter.Wait(ctx) != nil {
		w.giveBack(v)
		w.frontier.Postpone(v, 0)
		return false
	}
	return w.may(v)
}

func (w *worker) giveBack(v *frontier.Visit) {
	if v.Robots == "" && !v.Recrawl {
		w.quota.settle(v.Host, false)
	}
}

// fetch makes the exchange and ends the visit with what it brought.
func (w *worker) fetch(ctx context.Context, v *frontier.Visit, u weburl.URL) error {
	start := w.cfg.Now()
	v.Tries++
	req := fetch.Request{URL: v.URL, Trusted: w.trusted.has(u.Origin()), Arrives: w.receive}
	if v.Kind == page.Sitemap {
		req.MaxBody = w.cfg.MaxSitemap
	}
	if err := w.recall(v, &req); err != nil {
		return err
	}
	err := w.fetcher.Get(ctx, req, &w.resp)
	w.count(int64(len(w.resp.Raw)))
	rec := w.record(v, start)
	fate := w.judgeAnswer(&v.Item, err).brokenOff(ctx)
	if fate.again {
		return w.retry(v, rec, fate)
	}
	full := !v.Recrawl && w.quota.settle(v.Host, fate.failure == page.None)
	if rec.Failure, rec.Detail = fate.failure, fate.detail; rec.Failure != page.None {
		return w.fail(v, rec, fate)
	}
	if w.unmodified() {
		w.keep(rec)
	} else if err := w.read(rec, &v.Item); err != nil {
		return err
	}
	if err := w.finish(rec, v); err != nil {
		return err
	}
	if full {
		w.stop(w.pagesReached())
	}
	return w.done(v, fate)
}

func (e *Engine) pagesReached() error { return limitErr("%d pages", e.cfg.Pages) }

func (w *worker) record(v *frontier.Visit, start time.Time) *page.Record {
	rec := &page.Record{URL: v.URL, Final: v.URL, From: v.From, Seed: v.Seed, Path: v.Path, Depth: int(v.Depth),
		Time: start, Took: w.cfg.Now().Sub(start), Tries: int(v.Tries)}
	if len(w.resp.Raw) > 0 || w.resp.Status != 0 {
		rec.Response = &w.resp
	}
	return rec
}

// read makes a page of the answer and takes its links in.
func (w *worker) read(rec *page.Record, it *frontier.Item) error {
	w.sit()
	resp, parsed := rec.Response, w.parser.Parse
	if it.Kind == page.Sitemap {
		parsed = w.parser.ParseList
	}
	if w.cfg.DecodeAll || it.Kind == page.Sitemap || parse.Readable(parse.MediaType(resp.Header.Get("Content-Type"))) {
		if err := fetch.Decode(resp, maxInflated); err != nil && resp.Malformed == "" {
			resp.Malformed = err.Error() // what could be decoded is read all the same
		}
	}
	if err := parsed(resp, &w.page); err != nil && resp.Malformed == "" {
		resp.Malformed = err.Error()
	}
	rec.Page = &w.page
	w.heed(rec)
	if err := w.readText(rec); err != nil && resp.Malformed == "" {
		resp.Malformed = err.Error()
	}
	rec.Digest = sha1.Sum(resp.Payload)
	ref, err := w.earlier(rec)
	if err != nil {
		return err
	}
	rec.Revisit = ref
	for _, l := range w.page.Links {
		if l.Kind == page.Redirect {
			rec.Final = l.URL
		}
	}
	w.batch.links = len(w.page.Links)
	w.addLinks(&w.batch, it, &w.page)
	return nil
}

// readText gives the record its main text: that of an answered page, if texts are asked for and the page lets it be shown.
func (w *worker) readText(rec *page.Record) (err error) {
	if w.text == nil || rec.NoIndex || rec.NoArchive || rec.Response.Status != http.StatusOK || !parse.IsHTML(rec.Page.Sniffed) {
		return nil
	}
	if rec.Text, err = w.text(rec.Response, rec.Page); rec.Text != nil {
		return nil // what was found before a bound is worth more than that there is one
	}
	return err
}

// earlier is an earlier record with the same payload.
func (w *worker) earlier(rec *page.Record) (*page.Ref, error) {
	if len(rec.Response.Payload) == 0 {
		return nil, nil
	}
	ref, known, err := w.digests.Get(rec.Digest)
	if err != nil || !known {
		return nil, err
	}
	r := page.Ref(ref)
	return &r, nil
}

// finish commits a record with all that it brings, and counts it.
func (w *worker) finish(rec *page.Record, v *frontier.Visit) error {
	rec.Recrawl = w.found(rec, v)
	d := &done{url: rec.URL, visit: stats.Visit{Host: v.Host, Failure: string(rec.Failure), Took: rec.Took,
		Duplicate: rec.Revisit != nil, Recrawl: v.Recrawl}}
	d.meta = w.plan(v, rec.Recrawl)
	d.meta.Fetched = rec.Time
	if rec.Response != nil {
		d.visit.Bytes = int64(len(rec.Response.Raw))
	}
	if rec.Failure == page.None {
		d.visit.Status = rec.Response.Status
		if rec.Page != nil {
			d.visit.Type = rec.Page.Type
		}
		w.learn(&d.meta, rec)
	}
	w.batch.settles = rec.URL
	if err := w.take(&w.batch, rec, d); err != nil {
		return err
	}
	w.stand()
	w.listener.visited(rec)
	return nil
}

// fail ends a visit that had no answer, and will have none in this run. Where that is the host's fault the URL waits for the next.
func (w *worker) fail(v *frontier.Visit, rec *page.Record, f fate) error {
	origin := originOf(v.URL)
	l, tooMuch := w.judgeOrigin(origin, v, f)
	if _, gone := w.isLost(origin); gone || tooMuch || f.failure.OfHost() {
		if err := w.forsake(v.Host, v.Item, lost{f.failure, f.detail}, v.URL); err != nil {
			return err
		}
	} else {
		if !v.Told {
			w.batch.skips = append(w.batch.skips, w.skipOf(v, ruleFailed, string(rec.Failure)+": "+rec.Detail))
		}
		if err := w.finish(rec, v); err != nil {
			return err
		}
	}
	w.frontier.Done(v, frontier.Result{Outcome: f.outcome})
	w.unsettle(v.URL)
	if !tooMuch {
		return nil
	}
	return w.giveUp(origin, l)
}

// done gives the visit back; an origin that is given up loses what waits there.
func (w *worker) done(v *frontier.Visit, f fate, again ...frontier.Item) error {
	origin := originOf(v.URL)
	l, tooMuch := w.judgeOrigin(origin, v, f)
	w.frontier.Done(v, frontier.Result{Outcome: f.outcome, RetryAfter: f.ask, Again: again})
	w.unsettle(v.URL)
	if !tooMuch {
		return nil
	}
	return w.giveUp(origin, l)
}

// leave ends a visit that a rule forbids.
func (w *worker) leave(v *frontier.Visit, rule, why string) error {
	w.batch.reset()
	w.settleBy(v)
	w.addSkip(entryFor(rule), w.skipOf(v, rule, why), v.Told)
	if err := w.take(&w.batch, nil, nil); err != nil {
		return err
	}
	return w.done(v, fate{})
}

// leaveFor ends a visit whose URL has parameters without meaning. The URL without them takes its place.
func (w *worker) leaveFor(v *frontier.Visit, clean string) error {
	w.batch.reset()
	u, err := weburl.Parse(clean)
	if err != nil {
		return w.leave(v, "url", err.Error())
	}
	it := v.Item
	it.URL, it.Tries, it.Told = clean, 0, false
	it.Recrawl = false
	if it.Root {
		w.scope.AddSeed(u)
	}
	w.consider(&w.batch, u, it, "", "")
	w.settleBy(v)
	w.batch.path = v.Path[:max(0, len(v.Path)-1)] // to which the last hop is added again
	w.addSkip(entrySkip, w.skipOf(v, "clean-param", "robots.txt says it is the same as "+clean), v.Told)
	if err := w.take(&w.batch, nil, nil); err != nil {
		return err
	}
	return w.done(v, fate{})
}

func (w *worker) skipOf(v *frontier.Visit, rule, why string) page.Skip {
	return page.Skip{URL: v.URL, Host: v.Host, From: v.From, Depth: int(v.Depth), Time: w.cfg.Now(), Rule: rule, Why: why}
}

// entryFor is the entry for a URL that a rule leaves out at its visit: rules of the user's own may be others in the next run.
func entryFor(rule string) byte {
	if rule == "block" || rule == "depth" {
		return entryGone
	}
	return entrySkip
}

// addSkip leaves a URL out. What skipped.jsonl has said before, it does not say again.
func (w *worker) addSkip(entry byte, s page.Skip, told bool) {
	w.batch.entries.skip(entry, &s)
	if !told {
		w.batch.skips = append(w.batch.skips, s)
	}
}

// shed leaves out the visit's URL and all others that wait at a host which has its pages.
func (w *worker) shed(v *frontier.Visit) error {
	const rule = "max-pages-per-host"
	ordinary := func(it *frontier.Item) bool { return it.Robots == "" && !it.Recrawl }
	w.batch.settles = v.URL
	err := w.committer.within(func() error {
		for _, it := range w.frontier.Take(v.Host, ordinary) {
			w.addSkip(entrySkip, w.skipOf(&frontier.Visit{Item: it, Host: v.Host}, rule, "the host has its pages"), it.Told || w.endTold(it.URL))
		}
		w.addSkip(entrySkip, w.skipOf(v, rule, "the host has its pages"), v.Told)
		return w.put(&w.batch, nil, nil)
	})
	if err != nil {
		return err
	}
	w.tellSkips(&w.batch)
	return w.done(v, fate{})
}

// count adds to the bytes, and stops the crawl at their limit.
func (e *Engine) count(n int64) {
	if total := e.bytes.Add(n); e.cfg.Bytes > 0 && total >= e.cfg.Bytes {
		e.stop(e.bytesReached())
	}
}

func (e *Engine) bytesReached() error { return limitErr("%d bytes", e.cfg.Bytes) }

// canceled reports whether an exchange was ended by kumo itself, because the crawl stops.
func canceled(err error) bool { return errors.Is(err, context.Canceled) }
