package crawl

import (
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/engine/visit"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
)

// skip ends a visit whose URL is filtered by a rule.
func (w *worker) skip(v *frontier.Visit, rule, why string) error {
	w.batch.reset()
	w.endWithoutRecord(v)
	w.addSkip(entryFor(rule), w.skipOf(v, rule, why), v.Reported)
	if err := w.visits.abandons.commitBatch(&w.batch, nil); err != nil {
		return err
	}
	return w.done(v, visitOutcome{})
}

// skipForClean ends a visit whose URL has meaningless parameters, and queues the URL without them instead.
func (w *worker) skipForClean(v *frontier.Visit, clean string) error {
	w.batch.reset()
	u, err := weburl.Parse(clean)
	if err != nil {
		return w.skip(v, "url", err.Error())
	}
	it := v.Item
	it.URL, it.Tries, it.Reported, it.QueueLast, it.Deferred, it.Recrawl, it.Refetch, it.Lift = clean, 0, false,
		false, false, false, false, 0
	it.Path = v.Path[:max(0, len(v.Path)-1)] // the last hop is appended again
	if it.ScopeSeed {
		w.visits.admission.rules.Scope.AddSeed(u)
	}
	w.visits.admission.classify(&w.batch, u, it, "", "")
	w.endWithoutRecord(v)
	w.addSkip(entry.SkipKnown, w.skipOf(v, "clean-param", "robots.txt declares it the same as "+clean), v.Reported)
	if err := w.visits.abandons.commitBatch(&w.batch, nil); err != nil {
		return err
	}
	return w.done(v, visitOutcome{})
}

func (w *worker) skipOf(v *frontier.Visit, rule, why string) page.Skip {
	return page.Skip{
		URL:   v.URL,
		Host:  item.HostOfSlice(v.Host),
		From:  v.From,
		Depth: int(v.Depth),
		Time:  w.visits.cfg.Now(),
		Rule:  rule,
		Why:   why,
	}
}

// entryFor returns the kind of journal entry for a URL that a rule filters at its visit. The next run may have other
// block lists and depths, so such URLs stay pending for it.
func entryFor(rule string) byte {
	if rule == "block" || rule == "depth" {
		return entry.SkipPending
	}
	return entry.SkipKnown
}

// addSkip records a skip; reported means that skipped.jsonl has the URL already.
func (w *worker) addSkip(entry byte, s page.Skip, reported bool) {
	w.batch.entries.Skip(entry, &s)
	if !reported {
		w.batch.skips = append(w.batch.skips, s)
	}
}

// skipHost filters the visit's URL and all others that are queued at its host, which has reached a limit.
func (w *worker) skipHost(v *frontier.Visit, rule, why string) error {
	ordinary := func(it *item.Item) bool { return it.Robots == "" && !it.Recrawl }
	w.batch.item, w.batch.visitURL = &v.Item, v.URL
	w.visits.frontier.Prefetch(v.Host) // or TakeMatching would read the disk with the ledger's gate held
	err := w.visits.abandons.commitBatch(&w.batch, func() error {
		for _, it := range w.visits.frontier.TakeMatching(v.Host, ordinary) {
			w.addSkip(entry.SkipKnown, w.skipOf(&frontier.Visit{Item: it, Host: v.Host}, rule, why), it.Reported ||
				w.visits.abandons.ends.removeReported(it.URL))
			w.batch.ended = append(w.batch.ended, it.URL)
		}
		w.addSkip(entry.SkipKnown, w.skipOf(v, rule, why), v.Reported)
		return w.visits.batches.apply(&w.batch)
	})
	if err != nil {
		return err
	}
	return w.done(v, visitOutcome{})
}

// fail ends a visit that had no answer and is not retried in this run. If that is the host's fault, the next run
// retries the URL.
func (w *worker) fail(v *frontier.Visit, rec *page.Record, f visitOutcome) error {
	origin := item.OriginOf(v.URL)
	l, tooMuch := w.visits.outcomes.origins.judge(origin, v, &f)
	if _, gone := w.visits.outcomes.origins.Abandoned(origin); gone || tooMuch || f.Failure.AffectsHost() {
		if err := w.failVisit(v, visit.Abandonment{Failure: f.Failure, Why: f.Detail}); err != nil {
			return err
		}
	} else {
		if !v.Reported {
			w.batch.skips = append(w.batch.skips, w.skipOf(v, ruleFailed, string(rec.Failure)+": "+rec.Detail))
		}
		if err := w.finish(rec, v); err != nil {
			return err
		}
	}
	w.visits.frontier.Done(v, frontier.Result{Outcome: f.Outcome})
	w.visits.abandons.ends.clear(v.URL)
	if !tooMuch {
		return nil
	}
	return w.visits.abandons.abandonOrigin(origin, l)
}

// done gives the visit back. If its origin is to be abandoned, so are the origin's queued URLs.
func (w *worker) done(v *frontier.Visit, f visitOutcome, again ...item.Item) error {
	origin := item.OriginOf(v.URL)
	l, tooMuch := w.visits.outcomes.origins.judge(origin, v, &f)
	if f.wait > 0 {
		w.visits.frontier.Postpone(v, f.wait)
		w.visits.abandons.ends.clear(v.URL)
		return nil
	}
	wait := w.visits.frontier.Done(v,
		frontier.Result{Outcome: f.Outcome, RetryAfter: f.RetryAfter, Took: f.took, Requeue: again})
	if f.Outcome == frontier.Throttled {
		w.visits.listener.Slowed(item.HostOfSlice(v.Host), w.answer.resp.Status, f.RetryAfter, wait)
	}
	w.visits.abandons.ends.clear(v.URL)
	if !tooMuch {
		return nil
	}
	return w.visits.abandons.abandonOrigin(origin, l)
}

// returnQuota returns the page that the limits have granted.
func (w *worker) returnQuota(v *frontier.Visit) {
	if w.granted {
		w.granted = false
		w.visits.limits.quota.Finish(item.HostOfSlice(v.Host), w.domain, false)
		w.visits.limits.updateShare()
	}
}
