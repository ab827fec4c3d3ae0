package crawl

import (
	"crypto/sha1"
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/splitmix"
	"kumo/internal/base/weburl"
	"kumo/internal/content/duplicate"
	"kumo/internal/content/parse"
	"kumo/internal/content/traps"
	"kumo/internal/state/frontier"
)

// Rules in skipped.jsonl of the guard against traps: a pattern of URLs that brought nothing new, and the limits of a
// registered domain.
const (
	RuleTrap           = "trap"
	RulePagesPerDomain = "max-pages-per-domain"
	RuleHostsPerDomain = "max-hosts-per-domain"
	RuleNamesPerDomain = "max-dns-per-domain"
)

// TrapRules lists these rules.
var TrapRules = []string{RuleTrap, RulePagesPerDomain, RuleHostsPerDomain, RuleNamesPerDomain}

// maxCopies is how many copies of a page may come from a site that exists several times. They count as duplicates, but
// the count of steps into a trap starts again with them. So their number is bounded, and they may lead to one another.
const maxCopies = 3

// maxCompared is how many bytes of a body are compared with other pages.
const maxCompared = 256 << 10

// A trapGuard delays URLs that bring nothing new, and cuts off patterns that do so without end.
type trapGuard struct {
	off      bool
	detector *traps.Detector // used even if the guard is off: it has the state of earlier runs
	pages    *duplicate.Table
	titles   titleSet
	all      bool // compare all pages, for their records' NearDuplicate
	vain     *vainURLs
}

// newTrapGuard returns a guard with the state of earlier runs. all makes it compare all pages, not only a sample.
func newTrapGuard(cfg *Config, all bool, s *traps.State) *trapGuard {
	g := &trapGuard{detector: traps.New(traps.Config{Released: cfg.ReleasedTraps, Hosts: cfg.HostsPerDomain,
		Names: cfg.NamesPerDomain}), off: cfg.NoTraps, all: all}
	g.detector.Restore(s)
	g.pages = duplicate.NewTable(cfg.Shares.compared())
	g.vain = newVainURLs(s)
	return g
}

// applies reports whether a visit's URL may be deferred or cut off. Seeds, URLs from sitemaps, embedded resources and
// recrawls never are.
func (g *trapGuard) applies(v *frontier.Visit) bool {
	return !g.off && !isExempt(v) && v.Kind != page.Sitemap && v.Kind != page.Listed && !v.Kind.Embed()
}

// isExempt reports whether a visit is made regardless of the limits of its domain's hosts and names.
func isExempt(v *frontier.Visit) bool { return v.ScopeSeed || v.Recrawl }

// countedDomain returns the registered domain that a URL counts for; "" if the domain has no limit.
func (g *trapGuard) countedDomain(u weburl.URL) string {
	if g.off {
		return ""
	}
	return g.detector.CountedDomain(u)
}

// A trapVisit is the guard's state of a visit.
type trapVisit struct {
	guard  *trapGuard
	url    weburl.URL // URL of the visit
	trial  traps.Trial
	linked bool // the URL was found on a duplicate page, and a page that is not a duplicate links to it
}

// passesBeforeLookup checks a visit before the first request to its host, even for its address. If it returns false,
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
	case t.linked: // the linking page is not stored; it is not in a trap
		s.Vain = 0
	case v.Deferred || v.Vain > 0:
		s.From, _ = weburl.Parse(v.From) // a page without a URL matches no pattern
	}
	return s
}

// applyTrapVerdict applies the detector's verdict on a visit. If it returns false, the visit is over.
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

// passesBeforeRequest checks a visit that has passed all other rules. If it returns false, the visit is over.
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

// mustCompare reports whether the text of a page must be compared with those of other pages.
func (t *trapVisit) mustCompare(rec *page.Record, it *item.Item, domain string) bool {
	switch {
	case t.guard.all:
		return true
	case t.guard.off:
		return false
	case t.guard.titles.repeats(domain, rec.Page.Title):
		return true
	case t.trial != traps.Trial{}:
		return t.trial.Compare
	}
	// URLs that are exempt from the detection: seeds, and a sample of the others, so that copies of them are found
	return it.ScopeSeed || rec.Digest[0]%8 == 0
}

// A titleSet finds pages whose titles repeat: most near-duplicates have the same title, except for numbers. It is not
// exact, because it holds only the hashes of recent titles.
type titleSet struct {
	mu     sync.Mutex
	recent [1 << 14]uint32
}

// repeats reports whether another page of the domain had the same title, except for digits, and adds the title.
func (s *titleSet) repeats(domain, title string) bool {
	const prime = 1099511628211 // of FNV-1a
	h := uint64(len(domain))
	for i := range len(domain) {
		h = (h ^ uint64(domain[i])) * prime
	}
	for i := range len(title) {
		if c := title[i]; c-'0' > 9 {
			h = (h ^ uint64(c)) * prime
		}
	}
	h = splitmix.Mix(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := &s.recent[h%uint64(len(s.recent))]
	had := *slot == uint32(h>>32)
	*slot = uint32(h >> 32)
	return had
}

// isFirstCopy reports whether the page is its directory's first copy of another page; see traps.Detector.FirstCopy.
func (t *trapVisit) isFirstCopy(of string) bool {
	u, err := weburl.Parse(of)
	return err == nil && !t.guard.off && t.guard.detector.FirstCopy(t.url, u)
}

// addLink is called with each followed link. If the item was cut off earlier and must be queued now, it gives the item
// its own copy of the URL and returns true.
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

// endTrial reports the result of the visit to the detector, once.
func (t *trapVisit) endTrial(o traps.Outcome) {
	t.guard.detector.Finish(t.trial, o)
	t.trial = traps.Trial{}
}

// compare looks for a similar page, and reports the result to the detector. It returns the number of duplicate pages in
// a row on the way to the page's links. shown is the response from which the page was read.
// The caller holds the slot where the page was read.
func (t *trapVisit) compare(rec *page.Record, shown *page.Response, it *item.Item, signer *duplicate.Reader) (vain uint8) {
	before := it.Vain
	if t.linked {
		before = 0
	}
	if rec.Response.Status/100 != 2 || rec.Response.PayloadLen() == 0 {
		return before
	}
	var sig *duplicate.Signature
	html := parse.IsHTML(rec.Page.Sniffed) || shown != rec.Response
	domain := t.guard.detector.Domain(t.url)
	compared := !html || t.mustCompare(rec, it, domain) // other types are compared by their bytes
	if html && compared {
		s := signer.Read(shown.Body[:min(len(shown.Body), maxCompared)])
		sig = &s
	}
	if before == 0 && !t.guard.off {
		t.guard.detector.AddArea(t.url, it.From)
	}
	exact := rec.Digest
	if rec.Content != 0 { // recompressing a page does not change it
		exact = page.Digest{}
		binary.LittleEndian.PutUint64(exact[:], rec.Content)
	}
	if rec.Rendering != nil { // all pages of an app may be the same without their scripts
		exact = sha1.Sum(shown.Body)
	}
	m := t.guard.pages.FindOrAdd(rec.URL, domain, exact, sig)
	if m.URL == rec.URL { // unchanged
		return before
	}
	if !m.Domain && rec.Revisit != nil && rec.Rendering == nil && rec.Revisit.URL != rec.URL { // found in an earlier run, or long ago
		if u, err := weburl.Parse(rec.Revisit.URL); err == nil && t.guard.detector.Domain(u) == domain {
			m.Domain, m.Exact = true, true
		}
	}
	if t.guard.all && sig != nil && (rec.Revisit == nil || rec.Rendering != nil) && !m.Brief {
		rec.NearDuplicate = m.URL
	}
	switch {
	case !m.Domain && !compared:
		t.endTrial(traps.Inconclusive)
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
	case m.Copies < maxCopies: // or no earlier copies are known
		return 1
	case t.isFirstCopy(m.URL):
		return 1
	}
	return max(before, before+1) // saturates
}
