package crawl

import (
	"encoding/binary"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/bounded"
	"kumo/internal/duplicate"
	"kumo/internal/frontier"
	"kumo/internal/item"
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

// vainURLs are URLs that were found on pages in vain, and are not fetched. Another page that links to one of them shows
// that it is of no trap. They are not part of a checkpoint: after a restart such links to URLs that were found before
// are of no effect.
type vainURLs struct {
	seed maphash.Seed
	any  atomic.Bool

	mu sync.Mutex
	// whether another page links to it, in which case it waits once more, as that page's link
	linked *bounded.Recent[uint64, bool]
}

// maxVainURLs is how many vainURLs are remembered at least, in 20 bytes each.
const maxVainURLs = 1 << 16

func (v *vainURLs) add(url string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.linked.Put(maphash.String(v.seed, url), false)
	v.any.Store(true)
}

// link reports whether a link that is known is the first from a page that is not in vain to a URL of these.
func (v *vainURLs) link(it *item.Item) bool {
	if it.Vain > 0 || !v.any.Load() {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := maphash.String(v.seed, it.URL)
	linked, is := v.linked.Get(key)
	if !is || linked {
		return false
	}
	v.linked.Put(key, true)
	return true
}

// isLinked reports whether a URL waits once more, or did.
func (v *vainURLs) isLinked(url string) bool {
	if !v.any.Load() {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	linked, _ := v.linked.Get(maphash.String(v.seed, url))
	return linked
}

// drop forgets a URL that is about to be fetched, unless it waits once more.
func (v *vainURLs) drop(url string) {
	if !v.any.Load() {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := maphash.String(v.seed, url)
	if linked, _ := v.linked.Get(key); !linked {
		v.linked.Drop(key)
	}
}

func newTrapGuard(cfg *Config, s *traps.State) trapGuard {
	g := trapGuard{detector: traps.New(traps.Config{Released: cfg.ReleasedTraps, Hosts: cfg.HostsPerDomain,
		Names: cfg.NamesPerDomain})}
	g.off = cfg.NoTraps
	g.detector.Restore(s)
	g.pages = duplicate.NewTable(cfg.Shares.compared())
	g.vain = &vainURLs{seed: maphash.MakeSeed(), linked: bounded.NewRecent[uint64, bool](maxVainURLs)}
	return g
}

// watches reports whether a visit's URL may be deferred or cut off. Seeds were asked for, as was what the site's owner
// lists in a sitemap; what a page is shown with belongs to it; and what is visited again was worth a visit.
func (g *trapGuard) watches(v *frontier.Visit) bool {
	return !g.off && !mustCome(v) && v.Kind != page.Sitemap && v.Kind != page.Listed && !v.Kind.Embed()
}

// mustCome reports whether a visit is made however many hosts its domain has.
func mustCome(v *frontier.Visit) bool { return v.Root || v.Recrawl }

// counted is the registered domain as whose page a URL counts; "" where that has no limit.
func (g *trapGuard) counted(u weburl.URL) string {
	if g.off {
		return ""
	}
	return g.detector.Counted(u)
}

// enters asks the detector before anything is asked of the visit's host, its address included. When it returns false,
// the visit is over.
func (w *worker) enters(v *frontier.Visit, u weburl.URL) (bool, error) {
	if w.traps.off {
		return true, nil
	}
	if why := w.traps.detector.LookUp(u, mustCome(v)); why != "" {
		return false, w.leave(v, RuleNamesPerDomain, why)
	}
	if !w.traps.watches(v) {
		return true, nil
	}
	if v.Vain > 0 {
		if over, err := w.isOver(v); err != nil || over {
			w.frontier.Done(v, frontier.Result{})
			return false, err
		}
	}
	verdict, why := w.traps.detector.Enter(u, sourceOf(v))
	return w.passes(v, verdict, why)
}

// isOver reports whether a URL that was found on a page in vain was fetched meanwhile, or will be, since another page links to it, too.
func (w *worker) isOver(v *frontier.Visit) (bool, error) {
	if w.traps.vain.isLinked(v.URL) {
		return true, nil
	}
	if w.known.db == nil || v.Again {
		return false, nil
	}
	e, met, err := w.known.db.Get(v.URL)
	return met && !e.Fetched.IsZero(), err
}

func sourceOf(v *frontier.Visit) traps.Source {
	s := traps.Source{Vain: int(v.Vain), Deferred: v.Deferred}
	if v.Deferred || v.Vain > 0 {
		s.From, _ = weburl.Parse(v.From) // a page without a URL is of no pattern
	}
	return s
}

// passes does what the detector says of a visit. When it returns false, the visit is over.
func (w *worker) passes(v *frontier.Visit, verdict traps.Verdict, why string) (bool, error) {
	switch verdict {
	case traps.Cut:
		return false, w.leave(v, RuleTrap, why)
	case traps.Defer:
		it := v.Item
		it.Deferred = true
		w.frontier.Done(v, frontier.Result{Again: []item.Item{it}})
		return false, nil
	case traps.Wait:
		w.frontier.Postpone(v, 50*time.Millisecond)
		return false, nil
	}
	return true, nil
}

// try asks the detector for a visit that all else has let pass. When it returns false, the visit is over.
func (w *worker) try(v *frontier.Visit, u weburl.URL) (bool, error) {
	if w.traps.off {
		return true, nil
	}
	if why := w.traps.detector.Reach(u, mustCome(v)); why != "" {
		return false, w.leave(v, RuleHostsPerDomain, why)
	}
	if !w.traps.watches(v) {
		return true, nil
	}
	verdict, trial, why := w.traps.detector.Ask(u, sourceOf(v))
	if ok, err := w.passes(v, verdict, why); err != nil || !ok {
		return false, err
	}
	w.trial = trial
	if v.Vain > 0 {
		w.traps.vain.drop(v.URL)
	}
	return true, nil
}

// found marks a URL that was found on a page in vain.
func (g *trapGuard) found(it *item.Item) {
	if it.Vain > 0 && !g.off {
		g.vain.add(it.URL)
	}
}

// links reports whether a link to a URL that is known lets that in, in spite of how it was found before.
func (g *trapGuard) links(it *item.Item) bool {
	if !g.vain.link(it) {
		return false
	}
	it.URL = strings.Clone(it.URL) // it was part of its page
	return true
}

// settleTrial tells the detector what came of the visit, once.
func (w *worker) settleTrial(o traps.Outcome) {
	w.traps.detector.Settle(w.trial, o)
	w.trial = traps.Trial{}
}

// compare looks for a page that the record's is like, and tells the detector. It returns how many pages in a row were in
// vain on the way to what the page links to. It is called with the slot where the page was read.
func (w *worker) compare(rec *page.Record, it *item.Item) (vain uint8) {
	if rec.Response.Status/100 != 2 || rec.Response.PayloadLen() == 0 {
		return it.Vain
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
		return it.Vain
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
	switch {
	case !m.Domain || it.Kind == page.Sitemap:
		return 0
	case m.Copies < maxCopies: // or nothing is known of earlier ones
		return 1
	}
	return max(it.Vain, it.Vain+1) // at its maximum it stays
}
