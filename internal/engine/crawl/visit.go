package crawl

import (
	"context"
	"errors"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/content/traps"
	"kumo/internal/engine/visit"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
)

// A worker visits one URL at a time.
type worker struct {
	visits         *visits
	answer         answer
	batch          batch
	revisit        revisit
	trap           trapVisit
	reader         pageReader
	domain         string // the domain that the URL counts for; "" if it has no limit
	granted        bool   // the quota has granted the page, and not got the result yet
	session        uint64 // login session of the visit; 0: none
	turn           turn
	slot           bool            // the visit has one of the process's connections
	politenessHost string          // the host for whose sake the visit is made, if there is a router
	released       <-chan struct{} // closed when the host is released before the request; nil if there is no router
}

// visit makes one visit. An error ends the crawl; failures of the URL are recorded.
func (w *worker) visit(ctx context.Context, v *frontier.Visit) error {
	w.batch.reset()
	w.revisit.before, w.reader.vetoed, w.granted, w.trap.linked = earlierVisit{}, "", false, false
	w.reader.stated, w.reader.tdm = nil, nil
	defer w.answer.release()
	defer w.trap.endTrial(traps.Inconclusive) // unless endTrial was called before
	if w.visits.claims != nil {
		w.batch.visit = w.visits.claims.openVisit(v.Host)
		defer func() {
			w.visits.claims.retainOpen(v.Host, w.batch.visit)
			w.batch.visit = nil
		}()
	}
	if !w.isOurs(v) {
		return nil
	}
	if w.visits.known.depths && v.Robots == "" { // a link from nearer may have been found since it was queued
		state, depth, err := w.visits.known.seen.StateOf(v.URL)
		if err != nil {
			return err
		}
		if state != seen.Unknown {
			v.Depth = depth
		}
	}
	v.Reported = v.Reported || w.visits.abandons.ends.wasReported(v.URL)
	u, err := weburl.Parse(v.URL)
	if err != nil {
		return w.skip(v, "url", err.Error())
	}
	if host := item.HostOfSlice(
		v.Host,
	); !u.IsHTTP() ||
		u.Host() != host { // otherwise its robots.txt would be fetched at another host
		return w.skip(v, "url", "not a URL of "+host)
	}
	if v.Robots != "" {
		return w.visitRobots(ctx, v, u)
	}
	if l, ok := w.visits.outcomes.origins.Abandoned(u.Origin()); ok {
		if err := w.failVisit(v, l); err != nil {
			return err
		}
		return w.done(v, visitOutcome{})
	}
	ok, err := w.allowed(v, u)
	if err != nil || !ok {
		return err
	}
	if ok, err = (&tdmVisit{w, v, u}).read(ctx); err != nil || !ok {
		return err
	}
	if ok, err = w.logIn(ctx, v, u); err != nil || !ok || !w.awaitTurn(ctx, v, u) {
		return err
	}
	return w.fetch(ctx, v, u)
}

// allowed checks the rules that apply when a URL is visited. If it returns false, the visit is over.
func (w *worker) allowed(v *frontier.Visit, u weburl.URL) (bool, error) {
	w.trap.url = u
	if why := w.visits.admission.rules.Block.Match(u); why != "" {
		return false, w.skip(v, "block", why)
	}
	if w.visits.admission.rules.TooDeep(u, v.Depth) {
		return false, w.skip(v, "depth", "the limit was lowered")
	}
	if w.visits.renderings != nil && w.visits.renderings.crowded(u.Host()) {
		w.visits.frontier.Postpone(v, crowdedWait)
		return false, nil
	}
	if ok, err := w.passesBeforeLookup(v, u); err != nil || !ok {
		return false, err
	}
	if !w.visits.cfg.IgnoreRobots {
		rules, known := w.visits.gate.Rules.Get(u.Origin())
		if !known {
			w.visits.gate.await(v, u.Origin())
			return false, nil
		}
		w.visits.gate.applyDelay(v, rules)
		target := u.RequestURI()
		if ok, line := rules.Allowed(target); !ok {
			return false, w.skip(v, "robots", line)
		}
		w.reader.stated = rules.Usage(target)
		if line := w.reader.forbiddenUsage(v); line != "" {
			return false, w.skip(v, RuleUsage, line)
		}
		if err := w.addSitemaps(v, u.Origin(), rules); err != nil {
			return false, err
		}
		if clean := rules.Clean(v.URL); clean != v.URL && !(v.Redirects > 0 && rules.Clean(v.From) == clean) {
			return false, w.skipForClean(v, clean) // if the site redirects to the longer form, that is its page
		}
	}
	if ok, err := w.passesBeforeRequest(v, u); err != nil || !ok {
		return false, err
	}
	if v.Recrawl {
		return true, nil // limits count pages, not visits
	}
	w.domain = w.trap.guard.countedDomain(u)
	if v.Refetch && w.visits.known.db != nil {
		// The limits already count a page that this node knows as answered. They do not count a page of another node
		// that is lost with the node's data.
		e, _, err := w.visits.known.db.Get(v.URL)
		if counted := err == nil && e.Answered(); counted || err != nil {
			return counted, err
		}
	}
	switch w.visits.limits.quota.Acquire(item.HostOfSlice(v.Host), w.domain) {
	case policy.NotNow:
		w.visits.frontier.Postpone(v, 50*time.Millisecond)
		return false, nil
	case policy.ShareIsUsed:
		w.visits.limits.updateShare()
		w.visits.frontier.Postpone(v, 0)
		return false, nil
	case policy.CrawlIsFull:
		w.visits.limits.stopper.stop(w.visits.limits.pagesReached())
		w.visits.frontier.Postpone(v, 0)
		return false, nil
	case policy.HostIsFull:
		return false, w.skipHost(v, RulePagesPerHost, "the host has reached its limit of pages")
	case policy.HostBytesFull:
		return false, w.skipHost(v, RuleBytesPerHost, "the host has reached its limit of bytes")
	case policy.DomainIsFull:
		return false, w.skipHost(v, RulePagesPerDomain, traps.TooMany(w.domain, w.visits.cfg.PagesPerDomain, "pages"))
	}
	w.granted = true
	return true, nil
}

// awaitTurn waits for the node's request rate and for the turn of the server's address. If it returns false, the visit
// is over, because the run or this node's part for the host ends.
func (w *worker) awaitTurn(ctx context.Context, v *frontier.Visit, u weburl.URL) bool {
	if !w.acquireSlot(ctx) {
		w.returnQuota(v)
		w.visits.frontier.Postpone(v, 0)
		return false
	}
	if !w.acquireTurn(v) {
		return false
	}
	addr, err := w.visits.fetcher.Resolve(ctx, u.Hostname(), u.Port())
	if err == nil && !w.visits.frontier.Reserve(v, addr) {
		w.returnQuota(v)
		return false
	}
	if !w.awaitRate(ctx) {
		w.returnQuota(v)
		w.visits.frontier.Postpone(v, 0)
		return false
	}
	return w.checkPermit(v)
}

// fetch makes the request and ends the visit with its result.
func (w *worker) fetch(ctx context.Context, v *frontier.Visit, u weburl.URL) error {
	start := w.visits.cfg.Now()
	v.Tries++
	req := fetch.Request{URL: v.URL, Trusted: w.visits.scopeSeeds.trusts(u), OnArrival: w.answer.acquireBuffers}
	w.override(&req, u)
	if v.Kind == page.Sitemap {
		req.MaxBody = w.visits.cfg.MaxSitemap
	}
	if err := w.makeConditional(v, &req, u); err != nil {
		return err
	}
	if ok, err := w.runRequestHook(v, &req); err != nil || !ok {
		return err
	}
	asked := w.visits.hops.jar.LastRevision()
	w.turn.requested = true
	err := w.visits.fetcher.Get(ctx, req, &w.answer.resp)
	if !w.visits.feed.awaitScope(ctx) { // nor will it be in this run: the answer's links cannot be judged
		w.returnQuota(v)
		w.visits.frontier.Postpone(v, 0)
		return nil
	}
	w.visits.limits.count(w.answer.resp.RawLen())
	w.visits.limits.quota.AddBytes(item.HostOfSlice(v.Host), w.answer.resp.RawLen())
	rec := w.record(v, start)
	fate := w.visits.outcomes.judge(ctx, v, rec, &w.answer.resp, err, visit.Judge)
	if fate.Again {
		return w.retry(v, rec, fate)
	}
	answered := fate.Failure == page.None
	if answered {
		out, err := w.isLoggedOut(u)
		if err != nil {
			return err
		}
		if out {
			return w.retryLogin(v, rec, fate)
		}
		switch hop, to := w.classifyRedirect(v, u, asked); hop {
		case repeatURL:
			return w.repeatVisit(v, fate)
		case repeatSource:
			w.batch.refetch = append(w.batch.refetch, child(&v.Item, &page.Link{URL: to.String(), Kind: page.Redirect}))
		}
	}
	if answered && !w.revisit.unmodified() {
		rec.Phases.Arrived = w.visits.cfg.Now()
		err := w.reader.read(ctx, rec, &v.Item)
		rec.Phases.Parsed = w.visits.cfg.Now()
		switch {
		case errors.Is(err, errNoSlot):
			return w.retry(v, rec, w.visits.outcomes.judge(ctx, v, rec, &w.answer.resp, context.Canceled, visit.Judge))
		case err != nil:
			return err
		}
	}
	full := w.granted &&
		w.visits.limits.quota.Finish(item.HostOfSlice(v.Host), w.domain, answered && w.reader.vetoed == "")
	if w.granted && (!answered || w.reader.vetoed != "") {
		w.visits.limits.updateShare()
	}
	w.granted = false
	if rec.Failure, rec.Detail = fate.Failure, fate.Detail; !answered {
		return w.fail(v, rec, fate)
	}
	if w.reader.vetoed != "" {
		return w.dropPage(v, w.reader.vetoed, fate)
	}
	if was := &w.revisit.before; w.revisit.unmodified() { // the earlier record is still valid
		rec.Digest, rec.Content, rec.Revisit = was.Digest, was.Content, was.body
	}
	if err := w.finish(rec, v); err != nil {
		return err
	}
	if full {
		w.visits.limits.stopper.stop(w.visits.limits.pagesReached())
	}
	return w.done(v, fate)
}

// makeConditional makes the request of a recrawl conditional, unless the page is to be rendered: what its scripts load
// may have changed.
func (w *worker) makeConditional(v *frontier.Visit, req *fetch.Request, u weburl.URL) error {
	if w.visits.renderings != nil && w.visits.renderings.expects(u.Host()) {
		return w.revisit.loadIfRecrawl(v)
	}
	return w.revisit.makeConditional(v, req)
}

// finish commits a record with its links, and counts it.
func (w *worker) finish(rec *page.Record, v *frontier.Visit) error {
	rec.Recrawl = w.revisit.result(rec, v)
	d := &entry.Done{
		URL: rec.URL,
		Visit: stats.Visit{Host: item.HostOfSlice(v.Host), Failure: string(rec.Failure), Took: rec.Took,
			Duplicate: isDuplicate(rec), Recrawl: v.Recrawl},
	}
	d.Meta = w.revisit.plan(v, rec.Recrawl)
	d.Meta.Fetched = rec.Time
	if rec.Response != nil {
		d.Visit.Bytes = rec.Response.RawLen()
	}
	if rec.Failure == page.None {
		d.Visit.Status = rec.Response.Status
		if rec.Page != nil {
			d.Visit.Type, d.Visit.LinksCut = rec.Page.Type, rec.Page.LinksCut != ""
			d.Visit.Rendered = rec.Rendering != nil
			d.Visit.NeedsScript = rec.Page.NeedsScript != "" && !d.Visit.Rendered
			d.Visit.Usage = usageWords(rec)
		}
		w.revisit.fillMeta(&d.Meta, rec)
	}
	w.batch.planned = w.revisit.plannedAfter(&v.Item, &d.Meta)
	w.batch.item, w.batch.visitURL, w.batch.ranks.last = &v.Item, rec.URL, w.batch.ranks.ofPage
	rec.Importance = w.reader.ranks.importance(rec.URL, int32(rec.Depth))
	w.batch.records, w.batch.done = append(w.batch.records, rec), append(w.batch.done, d)
	rec.Phases.Storing = w.visits.cfg.Now()
	if err := w.visits.abandons.commitBatch(&w.batch, nil); err != nil {
		return err
	}
	rec.Phases.Stored = w.visits.cfg.Now()
	w.answer.releaseTurn()
	w.visits.listener.Visited(rec)
	// release the buffers before Done: a worker blocked on the frontier lock would keep them, and others would allocate
	// new ones
	w.answer.returnSlot()
	return nil
}
