package crawl

import (
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"io"
	"net/http"
	"time"

	"kumo/internal/entry"
	"kumo/internal/fetch"
	"kumo/internal/frontier"
	"kumo/internal/item"
	"kumo/internal/page"
	"kumo/internal/parse"
	"kumo/internal/policy"
	"kumo/internal/seen"
	"kumo/internal/stats"
	"kumo/internal/traps"
	"kumo/internal/weburl"
)

// A worker visits one URL at a time.
type worker struct {
	*Engine
	*readSlot // nil unless there is an answer to be read
	inSlot    bool
	resp      page.Response
	batch     batch
	was       was
	at        weburl.URL // the visit's
	domain    string     // whose pages it counts as; "" where they have no limit
	granted   bool       // the limits have granted the page, and are yet to be told what came of it
	trial     traps.Trial
	session   uint64 // the login that the visit is made with; 0 for none
	vetoed    string // why a hook wants nothing kept of the page; "" if none objects
	asks      string // for whose sake the visit is made, where there is a router: see politenessHost
}

// hostOf is the host of a visit's URL, of which it may have waited in a slice.
func hostOf(v *frontier.Visit) string { return item.HostOfSlice(v.Host) }

// visit takes a URL through its life. An error ends the crawl; what goes wrong with a URL is recorded.
func (w *worker) visit(ctx context.Context, v *frontier.Visit) error {
	w.batch.reset()
	w.was, w.vetoed, w.granted = was{}, "", false
	defer w.releaseSlot()
	defer w.settleTrial(traps.Nothing) // unless more is known
	if w.claims != nil {
		w.batch.visit = w.claims.begin(v.Host)
		defer func() {
			w.claims.putOff(v.Host, w.batch.visit)
			w.batch.visit = nil
		}()
	}
	if !w.isOurs(v) {
		return nil
	}
	if w.depths && v.Robots == "" { // it may have been met nearer since it was queued
		state, depth, err := w.known.seen.Look(v.URL)
		if err != nil {
			return err
		}
		if state != seen.Unknown {
			v.Depth = depth
		}
	}
	v.Told = v.Told || w.ends.wasReported(v.URL)
	u, err := weburl.Parse(v.URL)
	if err != nil {
		return w.leave(v, "url", err.Error())
	}
	if host := hostOf(v); !u.Web() || u.Host() != host { // its rules would be asked for, and awaited, at another host
		return w.leave(v, "url", "not a URL of "+host)
	}
	if v.Robots != "" {
		return w.visitRobots(ctx, v, u)
	}
	if l, ok := w.origins.isAbandoned(u.Origin()); ok {
		if err := w.failVisit(v, l); err != nil {
			return err
		}
		return w.done(v, visitOutcome{})
	}
	ok, err := w.allowed(v, u)
	if err != nil || !ok {
		return err
	}
	if ok, err = w.logIn(ctx, v, u); err != nil || !ok || !w.turn(ctx, v, u) {
		return err
	}
	return w.fetch(ctx, v, u)
}

// allowed asks the rules that a URL may meet only now. When it returns false, the visit is over.
func (w *worker) allowed(v *frontier.Visit, u weburl.URL) (bool, error) {
	w.at = u
	if why := w.rules.Block.Match(u); why != "" {
		return false, w.leave(v, "block", why)
	}
	if w.rules.TooDeep(u, v.Depth) {
		return false, w.leave(v, "depth", "the limit was lowered")
	}
	if ok, err := w.enters(v, u); err != nil || !ok {
		return false, err
	}
	if !w.cfg.IgnoreRobots {
		rules, known := w.robots.Get(u.Origin())
		if !known {
			w.wantRobots(v, u)
			return false, nil
		}
		w.learnDelay(v, rules)
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
	if ok, err := w.try(v, u); err != nil || !ok {
		return false, err
	}
	if v.Recrawl {
		return true, nil // limits count pages, not visits
	}
	w.domain = w.traps.counted(u)
	if counted, err := w.countedBefore(v); counted || err != nil {
		return counted, err
	}
	switch w.limits.quota.Take(hostOf(v), w.domain) {
	case policy.NotNow:
		w.frontier.Postpone(v, 50*time.Millisecond)
		return false, nil
	case policy.CrawlIsFull:
		w.control.stop(w.pagesReached())
		w.frontier.Postpone(v, 0)
		return false, nil
	case policy.HostIsFull:
		return false, w.shed(v, "max-pages-per-host", "the host has its pages")
	case policy.DomainIsFull:
		return false, w.shed(v, RulePagesPerDomain, traps.TooMany(w.domain, w.cfg.PagesPerDomain, "pages"))
	}
	w.granted = true
	return true, nil
}

// countedBefore reports whether the limits count a page already that is fetched once more: those that this node knows
// to have been answered. Another's that is lost with all that it knew is none of them.
func (w *worker) countedBefore(v *frontier.Visit) (bool, error) {
	if !v.Again || w.known.db == nil {
		return false, nil
	}
	e, _, err := w.known.db.Get(v.URL)
	return err == nil && e.Answered(), err
}

// turn waits for the node's own rate, and takes the visit's turn at its server's address. When it returns false, the
// visit is over.
func (w *worker) turn(ctx context.Context, v *frontier.Visit, u weburl.URL) bool {
	addr, err := w.fetcher.Resolve(ctx, u.Hostname(), u.Port())
	if err == nil && !w.frontier.Reserve(v, addr) {
		w.giveBack(v)
		return false
	}
	if w.limits.rate.Wait(ctx) != nil {
		w.giveBack(v)
		w.frontier.Postpone(v, 0)
		return false
	}
	return w.may(v)
}

func (w *worker) giveBack(v *frontier.Visit) {
	if w.granted {
		w.granted = false
		w.limits.quota.Settle(hostOf(v), w.domain, false)
	}
}

// fetch makes the exchange and ends the visit with what it brought.
func (w *worker) fetch(ctx context.Context, v *frontier.Visit, u weburl.URL) error {
	start := w.cfg.Now()
	v.Tries++
	req := fetch.Request{URL: v.URL, Trusted: w.trusts(u), Arrives: w.receive}
	w.override(&req, u)
	if v.Kind == page.Sitemap {
		req.MaxBody = w.cfg.MaxSitemap
	}
	if err := w.recall(v, &req); err != nil {
		return err
	}
	if ok, err := w.askRequest(v, &req); err != nil || !ok {
		return err
	}
	asked := w.cookies.Now()
	err := w.fetcher.Get(ctx, req, &w.resp)
	if !w.roots.feed.scoped(ctx) { // nor will it be in this run: the answer's links cannot be judged
		w.giveBack(v)
		w.frontier.Postpone(v, 0)
		return nil
	}
	w.count(w.resp.RawLen())
	rec := w.record(v, start)
	fate := w.excuse(v, w.judgeAnswer(&v.Item, err).brokenOff(ctx))
	if fate.again {
		return w.retry(v, rec, fate)
	}
	answered := fate.failure == page.None
	if answered {
		out, err := w.isLoggedOut(u)
		if err != nil {
			return err
		}
		if out {
			return w.visitAnew(v, rec, fate)
		}
		switch hop, to := w.followCookie(v, u, asked); hop {
		case again:
			return w.askAgain(v, fate)
		case back:
			w.batch.again = append(w.batch.again, w.hopBack(v, to))
		}
	}
	if answered && !w.unmodified() {
		switch err := w.read(ctx, rec, &v.Item); {
		case errors.Is(err, errNoTime):
			return w.retry(v, rec, w.judgeFailure(&v.Item, context.Canceled).brokenOff(ctx))
		case err != nil:
			return err
		}
	}
	full := w.granted && w.limits.quota.Settle(hostOf(v), w.domain, answered && w.vetoed == "")
	w.granted = false
	if rec.Failure, rec.Detail = fate.failure, fate.detail; !answered {
		return w.fail(v, rec, fate)
	}
	if w.vetoed != "" {
		return w.drop(v, w.vetoed, fate)
	}
	if w.unmodified() {
		w.keep(rec)
	}
	if err := w.finish(rec, v); err != nil {
		return err
	}
	if full {
		w.control.stop(w.pagesReached())
	}
	return w.done(v, fate)
}

func (e *Engine) pagesReached() error {
	return policy.LimitReached(stats.Count(e.limits.quota.Pages(), "pages"))
}

func (w *worker) record(v *frontier.Visit, start time.Time) *page.Record {
	rec := &page.Record{URL: v.URL, Final: v.URL, From: v.From, Seed: v.Seed, Path: v.Path, Depth: int(v.Depth),
		Time: start, Took: w.cfg.Now().Sub(start), Tries: int(v.Tries)}
	if w.resp.RawLen() > 0 || w.resp.Status != 0 {
		rec.Response = &w.resp
	}
	return rec
}

// errNoTime is a page that is not read because the crawl stops.
var errNoTime = errors.New("the crawl stops before a large page's turn")

// read makes a page of the answer and takes its links in. The error is errNoTime, with nothing done, where it had to
// wait for a large slot until the crawl had stopped.
func (w *worker) read(ctx context.Context, rec *page.Record, it *item.Item) error {
	w.acquireSlot()
	fits, err := w.parse(rec.Response, it)
	if !fits && err == nil {
		if !w.move(ctx) {
			return errNoTime
		}
		_, err = w.parse(rec.Response, it)
	}
	if err != nil {
		return err
	}
	rec.Page = &w.page
	w.cfg.Ignore.Mark(rec)
	if err := w.readText(rec); err != nil && rec.Response.Malformed == "" {
		rec.Response.Malformed = err.Error()
	}
	if err := w.readFields(rec); err != nil && rec.Response.Malformed == "" {
		rec.Response.Malformed = err.Error()
	}
	if err := w.askRecord(rec); err != nil {
		return err
	}
	if rec.Digest, err = digest(rec.Response); err != nil {
		return err
	}
	ref, err := w.earlier(rec)
	if err != nil {
		return err
	}
	if rec.Revisit = ref; w.vetoed == "" {
		w.compare(rec)
	}
	for _, l := range w.page.Links {
		if l.Kind == page.Redirect {
			rec.Final = l.URL
		}
	}
	w.findLinks(rec)
	if isRanked(rec, it.Kind) && w.vetoed == "" {
		w.ranks.begin(&w.batch, it.URL, len(w.page.Links))
	}
	if err := w.takeLinks(it); err != nil {
		return err
	}
	w.batch.links = len(w.page.Links)
	return nil
}

// parse reads the answer at the slot. It reports false, with nothing done, where that is an ordinary one and has not
// the room.
func (w *worker) parse(resp *page.Response, it *item.Item) (fits bool, err error) {
	read := w.parser.Parse
	if it.Kind == page.Sitemap {
		read = w.parser.ParseList
	}
	malformed := ""
	if w.cfg.DecodeAll || it.Kind == page.Sitemap || parse.Readable(parse.MediaType(resp.Header.Get("Content-Type"))) {
		switch err := w.reading.decoder.Decode(resp, w.room); {
		case errors.Is(err, fetch.ErrDisk):
			return false, err
		case errors.Is(err, fetch.ErrTooLong) && !w.large:
			return false, nil
		case err != nil:
			malformed = err.Error() // what could be decoded is read all the same
		}
	}
	err = read(resp, &w.page)
	if w.page.Cut && !w.large {
		return false, nil
	}
	if resp.Whole != nil && (it.Kind == page.Sitemap || parse.IsList(w.page.Sniffed)) {
		malformed = "" // it was read to its end
	}
	if err != nil {
		malformed = cmp.Or(malformed, err.Error())
	}
	resp.Malformed = cmp.Or(resp.Malformed, malformed)
	return true, nil
}

// takeLinks takes the page's links in. Where there are many, most go before the page itself is done, in batches of
// their own.
func (w *worker) takeLinks(it *item.Item) error {
	some := w.reading.pool.shares.linksAtOnce(2*(len(it.URL)+len(it.Seed)) + linkCost)
	rest := w.page.Links
	for ; len(rest) > some; rest = rest[some:] {
		if err := w.addLinks(&w.batch, it, &page.Page{Links: rest[:some], Robots: w.page.Robots}); err != nil {
			return err
		}
		if err := w.commitBatch(&w.batch); err != nil {
			return err
		}
		w.batch.nextOfPage()
	}
	if len(rest) == len(w.page.Links) {
		return w.addLinks(&w.batch, it, &w.page)
	}
	return w.addLinks(&w.batch, it, &page.Page{Links: rest, Robots: w.page.Robots})
}

// linkCost is about what a link takes on its way in, without the page that it is on.
const linkCost = 800

func digest(resp *page.Response) (page.Digest, error) {
	if resp.Far == nil {
		return sha1.Sum(resp.Payload), nil
	}
	h := sha1.New()
	_, err := io.Copy(h, resp.PayloadReader())
	return page.Digest(h.Sum(nil)), err
}

// readText gives the record its main text: that of an answered page, if texts are asked for and the page lets it be
// shown.
func (w *worker) readText(rec *page.Record) (err error) {
	if w.reading.text == nil || rec.NoIndex || rec.NoArchive || rec.Response.Status != http.StatusOK ||
		!parse.IsHTML(rec.Page.Sniffed) {
		return nil
	}
	if rec.Text, err = w.reading.text(rec.Response, rec.Page); rec.Text != nil {
		return nil // what was found before a bound is worth more than that there is one
	}
	return err
}

// readFields gives the record what rules make of its page, on the terms of readText.
func (w *worker) readFields(rec *page.Record) (err error) {
	if w.reading.fields == nil || rec.NoIndex || rec.NoArchive || rec.Response.Status != http.StatusOK {
		return nil
	}
	rec.Fields, err = w.reading.fields(rec.Response, rec.Page)
	return err
}

// earlier is an earlier record with the same payload.
func (w *worker) earlier(rec *page.Record) (*page.Ref, error) {
	if res := rec.Response; res.PayloadLen() == 0 || res.Status/100 == 3 {
		return nil, nil // what replays an archive shows redirects that are revisits without their bodies
	}
	ref, known, err := w.known.digests.Get(rec.Digest)
	if err != nil || !known {
		return nil, err
	}
	r := page.Ref(ref)
	if inChunks := rec.Response.PayloadLen() != rec.Response.RawLen()-int64(rec.Response.HeadLen); inChunks != (r.Chunked != [20]byte{}) {
		return nil, nil // replayed with the head of this answer, that body would not be read as it is framed
	}
	return &r, nil
}

// isDuplicate reports whether a record counts as a page that was met before: what came with an error or a redirect is
// no page, even if its record need not have the bytes again.
func isDuplicate(rec *page.Record) bool {
	if rec.Revisit == nil || rec.Response == nil {
		return false
	}
	status := rec.Response.Status
	return status >= 200 && status < 300 || status == http.StatusNotModified
}

// finish commits a record with all that it brings, and counts it.
func (w *worker) finish(rec *page.Record, v *frontier.Visit) error {
	rec.Recrawl = w.found(rec, v)
	d := &entry.Done{URL: rec.URL, Visit: stats.Visit{Host: hostOf(v), Failure: string(rec.Failure), Took: rec.Took,
		Duplicate: isDuplicate(rec), Recrawl: v.Recrawl}}
	d.Meta = w.plan(v, rec.Recrawl)
	d.Meta.Fetched = rec.Time
	if rec.Response != nil {
		d.Visit.Bytes = rec.Response.RawLen()
	}
	if rec.Failure == page.None {
		d.Visit.Status = rec.Response.Status
		if rec.Page != nil {
			d.Visit.Type = rec.Page.Type
		}
		w.learn(&d.Meta, rec)
	}
	w.batch.item, w.batch.settles, w.batch.ranks.ends = &v.Item, rec.URL, w.batch.ranks.of
	rec.Importance = w.ranks.importance(rec.URL, int32(rec.Depth))
	w.batch.records, w.batch.done = append(w.batch.records, rec), append(w.batch.done, d)
	if err := w.commitBatch(&w.batch); err != nil {
		return err
	}
	w.leaveSlot()
	w.listener.visited(rec)
	w.clear() // who waits for the frontier's lock would keep it from the next, who would make another
	return nil
}

// fail ends a visit that had no answer, and will have none in this run. Where that is the host's fault the URL waits
// for the next.
func (w *worker) fail(v *frontier.Visit, rec *page.Record, f visitOutcome) error {
	origin := originOf(v.URL)
	l, tooMuch := w.origins.judge(origin, v, f)
	if _, gone := w.origins.isAbandoned(origin); gone || tooMuch || f.failure.OfHost() {
		if err := w.failVisit(v, abandonment{f.failure, f.detail}); err != nil {
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
	w.ends.clear(v.URL)
	if !tooMuch {
		return nil
	}
	return w.abandonOrigin(origin, l)
}

// done gives the visit back; an origin that is given up loses what waits there.
func (w *worker) done(v *frontier.Visit, f visitOutcome, again ...item.Item) error {
	origin := originOf(v.URL)
	l, tooMuch := w.origins.judge(origin, v, f)
	wait := w.frontier.Done(v, frontier.Result{Outcome: f.outcome, RetryAfter: f.ask, Again: again})
	if f.outcome == frontier.Throttled {
		w.listener.slowed(hostOf(v), w.resp.Status, f.ask, wait)
	}
	w.ends.clear(v.URL)
	if !tooMuch {
		return nil
	}
	return w.abandonOrigin(origin, l)
}

// leave ends a visit that a rule forbids.
func (w *worker) leave(v *frontier.Visit, rule, why string) error {
	w.batch.reset()
	w.settleBy(v)
	w.addSkip(entryFor(rule), w.skipOf(v, rule, why), v.Told)
	if err := w.commitBatch(&w.batch); err != nil {
		return err
	}
	return w.done(v, visitOutcome{})
}

// leaveFor ends a visit whose URL has parameters without meaning. The URL without them takes its place.
func (w *worker) leaveFor(v *frontier.Visit, clean string) error {
	w.batch.reset()
	u, err := weburl.Parse(clean)
	if err != nil {
		return w.leave(v, "url", err.Error())
	}
	it := v.Item
	it.URL, it.Tries, it.Told, it.Late, it.Recrawl, it.Again, it.Lift = clean, 0, false, false, false, false, 0
	it.Path = v.Path[:max(0, len(v.Path)-1)] // to which the last hop is added again
	if it.Root {
		w.rules.Scope.AddSeed(u)
	}
	w.classify(&w.batch, u, it, "", "")
	w.settleBy(v)
	w.addSkip(entry.SkipKnown, w.skipOf(v, "clean-param", "robots.txt says it is the same as "+clean), v.Told)
	if err := w.commitBatch(&w.batch); err != nil {
		return err
	}
	return w.done(v, visitOutcome{})
}

func (w *worker) skipOf(v *frontier.Visit, rule, why string) page.Skip {
	return page.Skip{URL: v.URL, Host: hostOf(v), From: v.From, Depth: int(v.Depth), Time: w.cfg.Now(), Rule: rule,
		Why: why}
}

// entryFor is the entry for a URL that a rule leaves out at its visit: rules of the user's own may be others in the
// next run.
func entryFor(rule string) byte {
	if rule == "block" || rule == "depth" {
		return entry.SkipWaiting
	}
	return entry.SkipKnown
}

// addSkip leaves a URL out. What skipped.jsonl has said before, it does not say again.
func (w *worker) addSkip(entry byte, s page.Skip, told bool) {
	w.batch.entries.Skip(entry, &s)
	if !told {
		w.batch.skips = append(w.batch.skips, s)
	}
}

// shed leaves out the visit's URL and all others that wait at its host, which has its pages.
func (w *worker) shed(v *frontier.Visit, rule, why string) error {
	ordinary := func(it *item.Item) bool { return it.Robots == "" && !it.Recrawl }
	w.batch.item, w.batch.settles = &v.Item, v.URL
	w.frontier.Gather(v.Host) // or Take would read it with the ledger's gate held
	err := w.ledger.Within(func() error {
		for _, it := range w.frontier.Take(v.Host, ordinary) {
			w.addSkip(entry.SkipKnown, w.skipOf(&frontier.Visit{Item: it, Host: v.Host}, rule, why), it.Told ||
				w.ends.takeReported(it.URL))
			w.batch.ended = append(w.batch.ended, it.URL)
		}
		w.addSkip(entry.SkipKnown, w.skipOf(v, rule, why), v.Told)
		return w.apply(&w.batch)
	})
	if err != nil {
		return err
	}
	w.tellSkips(&w.batch)
	return w.done(v, visitOutcome{})
}

// count adds to the bytes, and stops the crawl at their limit.
func (e *Engine) count(n int64) {
	if total := e.limits.bytes.Add(n); e.cfg.Bytes > 0 && total >= e.cfg.Bytes {
		e.control.stop(e.bytesReached())
	}
}

func (e *Engine) bytesReached() error { return policy.LimitReached(stats.Count(e.cfg.Bytes, "bytes")) }

// canceled reports whether an exchange was ended by kumo itself, because the crawl stops.
func canceled(err error) bool { return errors.Is(err, context.Canceled) }
