package crawl

import (
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/engine/visit"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
)

// leave ends a visit that a rule forbids.
func (w *worker) leave(v *frontier.Visit, rule, why string) error {
	w.batch.reset()
	w.settleBy(v)
	w.addSkip(entryFor(rule), w.skipOf(v, rule, why), v.Told)
	if err := w.visits.abandons.commitBatch(&w.batch, nil); err != nil {
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
	it.URL, it.Tries, it.Told, it.Late, it.Deferred, it.Recrawl, it.Again, it.Lift = clean, 0, false, false, false, false,
		false, 0
	it.Path = v.Path[:max(0, len(v.Path)-1)] // to which the last hop is added again
	if it.Root {
		w.visits.admission.rules.Scope.AddSeed(u)
	}
	w.visits.admission.classify(&w.batch, u, it, "", "")
	w.settleBy(v)
	w.addSkip(entry.SkipKnown, w.skipOf(v, "clean-param", "robots.txt says it is the same as "+clean), v.Told)
	if err := w.visits.abandons.commitBatch(&w.batch, nil); err != nil {
		return err
	}
	return w.done(v, visitOutcome{})
}

func (w *worker) skipOf(v *frontier.Visit, rule, why string) page.Skip {
	return page.Skip{URL: v.URL, Host: item.HostOfSlice(v.Host), From: v.From, Depth: int(v.Depth), Time: w.visits.cfg.Now(), Rule: rule,
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
	w.visits.frontier.Gather(v.Host) // or Take would read it with the ledger's gate held
	err := w.visits.abandons.commitBatch(&w.batch, func() error {
		for _, it := range w.visits.frontier.Take(v.Host, ordinary) {
			w.addSkip(entry.SkipKnown, w.skipOf(&frontier.Visit{Item: it, Host: v.Host}, rule, why), it.Told ||
				w.visits.abandons.ends.takeReported(it.URL))
			w.batch.ended = append(w.batch.ended, it.URL)
		}
		w.addSkip(entry.SkipKnown, w.skipOf(v, rule, why), v.Told)
		return w.visits.batches.apply(&w.batch)
	})
	if err != nil {
		return err
	}
	return w.done(v, visitOutcome{})
}

// fail ends a visit that had no answer, and will have none in this run. Where that is the host's fault the URL waits
// for the next.
func (w *worker) fail(v *frontier.Visit, rec *page.Record, f visitOutcome) error {
	origin := item.OriginOf(v.URL)
	l, tooMuch := w.visits.outcomes.origins.judge(origin, v, &f)
	if _, gone := w.visits.outcomes.origins.Abandoned(origin); gone || tooMuch || f.Failure.OfHost() {
		if err := w.failVisit(v, visit.Abandonment{Failure: f.Failure, Why: f.Detail}); err != nil {
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
	w.visits.frontier.Done(v, frontier.Result{Outcome: f.Outcome})
	w.visits.abandons.ends.clear(v.URL)
	if !tooMuch {
		return nil
	}
	return w.visits.abandons.abandonOrigin(origin, l)
}

// done gives the visit back; an origin that is given up loses what waits there.
func (w *worker) done(v *frontier.Visit, f visitOutcome, again ...item.Item) error {
	origin := item.OriginOf(v.URL)
	l, tooMuch := w.visits.outcomes.origins.judge(origin, v, &f)
	if f.wait > 0 {
		w.visits.frontier.Postpone(v, f.wait)
		w.visits.abandons.ends.clear(v.URL)
		return nil
	}
	wait := w.visits.frontier.Done(v, frontier.Result{Outcome: f.Outcome, RetryAfter: f.RetryAfter, Took: f.took, Again: again})
	if f.Outcome == frontier.Throttled {
		w.visits.listener.Slowed(item.HostOfSlice(v.Host), w.answer.resp.Status, f.RetryAfter, wait)
	}
	w.visits.abandons.ends.clear(v.URL)
	if !tooMuch {
		return nil
	}
	return w.visits.abandons.abandonOrigin(origin, l)
}

// giveBack returns the page that the limits have granted.
func (w *worker) giveBack(v *frontier.Visit) {
	if w.granted {
		w.granted = false
		w.visits.limits.quota.Settle(item.HostOfSlice(v.Host), w.domain, false)
	}
}
