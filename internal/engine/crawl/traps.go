package crawl

import (
	"encoding/binary"
	"strings"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/duplicate"
	"kumo/internal/content/parse"
	"kumo/internal/content/traps"
	"kumo/internal/state/frontier"
)

// The rules in skipped.jsonl of what the guard against traps leaves out: a pattern that brought nothing new, and what a
// registered domain has too many of.
const (
	RuleTrap           = "trap"
	RulePagesPerDomain = "max-pages-per-domain"
	RuleHostsPerDomain = "max-hosts-per-domain"
	RuleNamesPerDomain = "max-dns-per-domain"
)

// TrapRules are all of them.
var TrapRules = []string{RuleTrap, RulePagesPerDomain, RuleHostsPerDomain, RuleNamesPerDomain}

// maxCopies is how many copies of a page may be those of a site that is there several times. They are in vain, but the
// count of steps into a trap begins again with them: their number has a bound, and they may lead from one to the next.
const maxCopies = 3

// maxCompared is how much of a page's body is compared with others'.
const maxCompared = 256 << 10

// A trapGuard delays what brings nothing new, and cuts off what does so without end.
type trapGuard struct {
	off      bool
	detector *traps.Detector // also where the guard is off: it has what the crawl's earlier runs have learnt
	pages    *duplicate.Table
	vain     *vainURLs
}

func newTrapGuard(cfg *Config, s *traps.State) *trapGuard {
	g := &trapGuard{detector: traps.New(traps.Config{Released: cfg.ReleasedTraps, Hosts: cfg.HostsPerDomain,
		Names: cfg.NamesPerDomain})}
	g.off = cfg.NoTraps
	g.detector.Restore(s)
	g.pages = duplicate.NewTable(cfg.Shares.compared())
	g.vain = newVainURLs(s)
	return g
}

// watches reports whether a visit's URL may be deferred or cut off. Seeds, URLs from sitemaps, embedded resources and
// recrawls never are.
func (g *trapGuard) applies(v *frontier.Visit) bool {
	return !g.off && !isExempt(v) && v.Kind != page.Sitemap && v.Kind != page.Listed && !v.Kind.Embed()
}

// isExempt reports whether a visit is made however many hosts its domain has.
func isExempt(v *frontier.Visit) bool { return v.ScopeSeed || v.Recrawl }

// countedDomain is the registered domain as whose page a URL counts; "" where that has no limit.
func (g *trapGuard) countedDomain(u weburl.URL) string {
	if g.off {
		return ""
	}
	return g.detector.CountedDomain(u)
}

// A trapVisit is what the guard knows of a visit.
type trapVisit struct {
	guard  *trapGuard
	url    weburl.URL // the visit's
	trial  traps.Trial
	linked bool // the URL was found on a page in vain, and a page links to it that is not
}

// passesBeforeLookup asks the detector before anything is asked of the visit's host, its address included. When it returns false,
// the visit is over.
func (w *worker) passesBeforeLookup(v *frontier.Visit, u weburl.URL) (bool, error) {
	if w.trap.guard.off {
		return true, nil
	}
	if why := w.trap.guard.detector.CheckName(u, isExempt(v)); why != "" {
		return false, w.skip(v, RuleNamesPerDomain, why)
	}
	if !w.trap.guard.applies(v) {
		return true, nil
	}
	w.trap.linked = v.Vain > 0 && w.trap.guard.vain.isLinked(v.URL)
	verdict, why := w.trap.guard.detector.Precheck(u, w.trap.sourceOf(v))
	return w.applyTrapVerdict(v, verdict, why)
}

func (t *trapVisit) sourceOf(v *frontier.Visit) traps.Source {
	s := traps.Source{Vain: int(v.Vain), Deferred: v.Deferred}
	switch {
	case t.linked: // the page that counts is not remembered; it is no page of a trap
		s.Vain = 0
	case v.Deferred || v.Vain > 0:
		s.From, _ = weburl.Parse(v.From) // a page without a URL is of no pattern
	}
	return s
}

// applyTrapVerdict does what the detector says of a visit. When it returns false, the visit is over.
func (w *worker) applyTrapVerdict(v *frontier.Visit, verdict traps.Verdict, why string) (bool, error) {
	switch verdict {
	case traps.Exclude:
		w.trap.guard.vain.cut(v.URL)
		return false, w.skip(v, RuleTrap, why)
	case traps.Defer:
		it := v.Item
		it.Deferred = true
		w.visits.frontier.Done(v, frontier.Result{Requeue: []item.Item{it}})
		return false, nil
	case traps.Wait:
		w.visits.frontier.Postpone(v, 50*time.Millisecond)
		return false, nil
	}
	return true, nil
}

// passesBeforeRequest asks the detector for a visit that all else has let pass. When it returns false, the visit is over.
func (w *worker) passesBeforeRequest(v *frontier.Visit, u weburl.URL) (bool, error) {
	if w.trap.guard.off {
		return true, nil
	}
	if why := w.trap.guard.detector.CheckHost(u, isExempt(v)); why != "" {
		return false, w.skip(v, RuleHostsPerDomain, why)
	}
	if !w.trap.guard.applies(v) {
		return true, nil
	}
	verdict, trial, why := w.trap.guard.detector.Admit(u, w.trap.sourceOf(v))
	if ok, err := w.applyTrapVerdict(v, verdict, why); err != nil || !ok {
		return false, err
	}
	w.trap.trial = trial
	return true, nil
}

// isFirstCopy reports whether the page is the first copy of a page in its directory; see traps.Detector.FirstCopy.
func (t *trapVisit) isFirstCopy(of string) bool {
	u, err := weburl.Parse(of)
	return err == nil && !t.guard.off && t.guard.detector.FirstCopy(t.url, u)
}

// addLink is called with each link that is followed. It reports whether the item has to be queued because it was cut off,
// and gives it a URL of its own then.
func (g *trapGuard) addLink(it *item.Item) bool {
	switch {
	case g.off:
		return false
	case it.Vain > 0:
		g.vain.found(it.URL)
		return false
	case !g.vain.link(it.URL):
		return false
	}
	it.URL = strings.Clone(it.URL) // it was part of its page
	return true
}

// endTrial tells the detector what came of the visit, once.
func (t *trapVisit) endTrial(o traps.Outcome) {
	t.guard.detector.Finish(t.trial, o)
	t.trial = traps.Trial{}
}

// compare looks for a page that the record's is like, and tells the detector. It returns how many pages in a row were in
// vain on the way to what the page links to. It is called with the slot where the page was read.
func (t *trapVisit) compare(rec *page.Record, it *item.Item, signer *duplicate.Reader) (vain uint8) {
	before := it.Vain
	if t.linked {
		before = 0
	}
	if rec.Response.Status/100 != 2 || rec.Response.PayloadLen() == 0 {
		return before
	}
	var sig *duplicate.Signature
	if parse.IsHTML(rec.Page.Sniffed) {
		s := signer.Read(rec.Response.Body[:min(len(rec.Response.Body), maxCompared)])
		sig = &s
	}
	if before == 0 && !t.guard.off {
		t.guard.detector.AddArea(t.url, it.From)
	}
	domain := t.guard.detector.Domain(t.url)
	exact := rec.Digest
	if rec.Content != 0 { // the same page compressed anew is no other
		exact = page.Digest{}
		binary.LittleEndian.PutUint64(exact[:], rec.Content)
	}
	m := t.guard.pages.FindOrAdd(rec.URL, domain, exact, sig)
	if m.URL == rec.URL { // as it was before
		return before
	}
	if !m.Domain && rec.Revisit != nil && rec.Revisit.URL != rec.URL { // of an earlier run, or long ago
		if u, err := weburl.Parse(rec.Revisit.URL); err == nil && t.guard.detector.Domain(u) == domain {
			m.Domain, m.Exact = true, true
		}
	}
	if sig != nil && rec.Revisit == nil && !m.Brief {
		rec.NearDuplicate = m.URL
	}
	switch {
	case !m.Domain:
		t.endTrial(traps.NewText)
	case m.Exact:
		t.endTrial(traps.Duplicate)
	default:
		t.endTrial(traps.NearDuplicate)
	}
	switch {
	case !m.Domain || it.Kind == page.Sitemap:
		return 0
	case m.Copies < maxCopies: // or nothing is known of earlier ones
		return 1
	case t.isFirstCopy(m.URL):
		return 1
	}
	return max(before, before+1) // at its maximum it stays
}
