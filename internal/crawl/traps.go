package crawl

import (
	"encoding/binary"
	"time"

	"kumo/internal/duplicate"
	"kumo/internal/frontier"
	"kumo/internal/page"
	"kumo/internal/parse"
	"kumo/internal/traps"
	"kumo/internal/weburl"
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

// maxCompared is how much of a page's body is compared with others'.
const maxCompared = 256 << 10

// A trapGuard leaves out what brings nothing new, as far as it may.
type trapGuard struct {
	detector *traps.Detector  // also where it is off: it has what the crawl's earlier runs have learnt
	pages    *duplicate.Table // nil where it is off
}

func newTrapGuard(cfg *Config, s *traps.State) trapGuard {
	g := trapGuard{detector: traps.New(traps.Config{Released: cfg.ReleasedTraps, Hosts: cfg.HostsPerDomain,
		Names: cfg.NamesPerDomain})}
	g.detector.Restore(s)
	if !cfg.NoTraps {
		g.pages = duplicate.NewTable(cfg.Shares.compared())
	}
	return g
}

// watches reports whether a visit's URL may be left out. Seeds were asked for, what a page is shown with belongs to it,
// and what is visited again was worth a visit.
func (g *trapGuard) watches(v *frontier.Visit) bool {
	return g.pages != nil && !mustCome(v) && v.Kind != page.Sitemap && !v.Kind.Embed()
}

// mustCome reports whether a visit is made however many hosts its domain has.
func mustCome(v *frontier.Visit) bool { return v.Root || v.Recrawl }

// counted is the registered domain as whose page a URL counts; "" where that has no limit.
func (g *trapGuard) counted(u weburl.URL) string {
	if g.pages == nil {
		return ""
	}
	return g.detector.Counted(u)
}

// enters asks the detector before anything is asked of the visit's host, its address included. When it returns false,
// the visit is over.
func (w *worker) enters(v *frontier.Visit, u weburl.URL) (bool, error) {
	if w.traps.pages == nil {
		return true, nil
	}
	if why := w.traps.detector.LookUp(u, mustCome(v)); why != "" {
		return false, w.leave(v, RuleNamesPerDomain, why)
	}
	if !w.traps.watches(v) {
		return true, nil
	}
	if why := w.traps.detector.Enter(u); why != "" {
		return false, w.leave(v, RuleTrap, why)
	}
	return true, nil
}

// try asks the detector for a visit that all else has let pass. When it returns false, the visit is over.
func (w *worker) try(v *frontier.Visit, u weburl.URL) (bool, error) {
	if w.traps.pages == nil {
		return true, nil
	}
	if why := w.traps.detector.Reach(u, mustCome(v)); why != "" {
		return false, w.leave(v, RuleHostsPerDomain, why)
	}
	if !w.traps.watches(v) {
		return true, nil
	}
	verdict, trial, why := w.traps.detector.Ask(u)
	switch verdict {
	case traps.Leave:
		return false, w.leave(v, RuleTrap, why)
	case traps.Wait:
		w.frontier.Postpone(v, 50*time.Millisecond)
		return false, nil
	}
	w.trial = trial
	return true, nil
}

// settleTrial tells the detector what came of the visit, once.
func (w *worker) settleTrial(o traps.Outcome) {
	w.traps.detector.Settle(w.trial, o)
	w.trial = traps.Trial{}
}

// compare looks for a page that the record's is like, and tells the detector. It is called with the slot where the page
// was read.
func (w *worker) compare(rec *page.Record) {
	if w.traps.pages == nil || rec.Response.Status/100 != 2 || rec.Response.PayloadLen() == 0 {
		return
	}
	var sig *duplicate.Signature
	if parse.IsHTML(rec.Page.Sniffed) {
		s := w.signer.Read(rec.Response.Body[:min(len(rec.Response.Body), maxCompared)])
		sig = &s
	}
	domain := w.traps.detector.Domain(w.at)
	exact := rec.Digest
	if rec.Content != 0 { // the same page compressed anew is no other
		exact = page.Digest{}
		binary.LittleEndian.PutUint64(exact[:], rec.Content)
	}
	m := w.traps.pages.Offer(rec.URL, domain, exact, sig)
	if m.URL == rec.URL { // as it was before
		return
	}
	if !m.Domain && rec.Revisit != nil && rec.Revisit.URL != rec.URL { // of an earlier run, or long ago
		if u, err := weburl.Parse(rec.Revisit.URL); err == nil && w.traps.detector.Domain(u) == domain {
			m.Domain, m.Exact = true, true
		}
	}
	if sig != nil && rec.Revisit == nil {
		rec.NearDuplicate = m.URL
	}
	switch {
	case !m.Domain:
		w.settleTrial(traps.Fresh)
	case m.Exact:
		w.settleTrial(traps.Same)
	default:
		w.settleTrial(traps.Near)
	}
}
