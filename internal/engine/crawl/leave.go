package crawl

import (
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
)

// leave ends a visit that a rule forbids.
func (w *worker) leave(v *frontier.Visit, rule, why string) error {
	w.batch.reset()
	w.settleBy(v)
	w.addSkip(entryFor(rule), w.skipOf(v, rule, why), v.Told)
	if err := w.visits.abandons.commitBatch(&w.batch); err != nil {
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
	if err := w.visits.abandons.commitBatch(&w.batch); err != nil {
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
	err := w.visits.abandons.commitWith(&w.batch, func() error {
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
