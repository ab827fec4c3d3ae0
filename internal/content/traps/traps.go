// Package traps detects crawler traps, such as endless calendars, from the patterns of a site's URLs.
//
// Other traps are session ids in paths, cyclic paths, and name servers that resolve every name. The package defers
// suspected URLs and excludes endless ones.
//
// A URL's pattern consists of its host, the directories of its path and the names in its query. Classes ({n}, {date},
// {id}, {word}) replace the parts that vary from URL to URL. The patterns of a registered domain form a bounded tree: a
// node keeps a limited number of names, and all others become {word}.
//
// # Suspicion defers
//
// A page is vain if its text equals, or nearly equals, that of another page of the domain. Each pattern has a budget. A
// vain page reduces it; a page with a new text increases it. A pattern whose budget is used up is suspected, and its
// URLs are deferred: the host's other URLs go first. A page with a new text ends the suspicion.
//
// The texts of most pages need not be compared ([Trial.Compare]). In a directory, host or domain with enough compared
// pages, only a sample is. After a vain page, more pages of its pattern, of the directories above, and of the domain are
// compared. Pages that are not compared change nothing.
//
// A pattern starts with a smaller budget if its siblings brought nothing new, or if its path is cyclic. Below a
// directory where hardly any page was new, no further patterns are distinguished.
//
// # Only endless patterns are excluded
//
// Copies do not prove a trap: a translated manual has hundreds of untranslated pages. The origin of the URLs
// distinguishes a generator from a finite set. The publisher of a set lists it, so its pages are found on a table of
// contents, or a few steps from one. A generator lists nothing: each page is linked only from the page before it, which
// is a copy, too.
//
// So the measure is [Source.Vain], the number of consecutive vain pages on the path to a URL. In a finite set it stays
// small, however large the set is. In a generator it grows with each step. The first three copies of a page restart it
// at 1: a site may exist several times, and then each of its pages has a copy. So does the first copy of a page in each
// directory that is linked from outside ([Detector.FirstCopy]), such as a translation. The number of such copies is
// bounded by the number of pages. A generator has few texts and repeats them.
//
// When a host has only deferred URLs left, they are fetched in descending order of Vain. This is the shortest path down
// into a generator. A suspected pattern is endless when one of its URLs comes up with a Vain of [maxVain]. The URLs of
// an endless pattern that were found on its own pages or on vain pages are excluded. The same holds for the patterns
// that led there, step by step upwards. A set without a path of that length is fetched completely, whatever it
// contains.
//
// Seeds, URLs of sitemaps, and embeds are never deferred or excluded. Links from a page of another pattern that is not
// vain are never excluded.
//
// Hosts have queues of their own, so the order between hosts carries no information. If many hosts of a domain have the
// same patterns, a pattern is also endless after [maxCrossHost] vain pages found on vain pages of other hosts.
//
// # Bounds
//
// A trap of one pattern with one text costs the budget (20 near-duplicates, or 10 equal pages) and at most maxVain more
// pages. It also costs the dead-end pages beside each step: for a calendar whose months list their days, maxVain times
// the days of a month. Each new text adds 8 to the budget, up to 32.
//
// A finite chain of copies, in which each page is linked only from the one before, is excluded after maxVain like a
// calendar. The two cannot be distinguished before the chain ends.
//
// A [Detector] uses no clock and no randomness: the same calls in the same order yield the same results.
//
// The package samples a site's URL patterns for duplicates as Bar-Yossef, Keidar, Schonfeld do ("Do Not Crawl in the
// DUST", WWW 2007). Unlike theirs, it works while the crawl runs, and does not rewrite URLs. Excluded URLs are listed,
// and users can release them.
package traps

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"kumo/internal/base/splitmix"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
)

// A Config limits a detector. The zero value means the defaults.
type Config struct {
	Hosts    int64 // hosts of a registered domain that are fetched; default DefaultHosts; negative: no limit
	Names    int64 // names of a registered domain that are looked up; default DefaultNames; negative: no limit
	Patterns int   // nodes in the tree of a domain; default 1,024
	Memory   int   // nodes of all domains that are kept at least, about 200 bytes each; default 32,768

	// Released are patterns whose URLs are always fetched, as [Pattern] returns them.
	Released []string
}

// Default limits of a registered domain.
const (
	DefaultHosts = 100_000
	DefaultNames = 200_000
)

const (
	startBudget   = 20 // of an unknown pattern
	suspectBudget = 3  // of a pattern with a cyclic path or with unproductive siblings
	maxBudget     = 32
	gainNew       = 8 // for a new text
	costSame      = 2 // for the same text as another page
	costNear      = 1 // for nearly the same text

	suspectAfter = 16 // judged responses of all patterns below a node
	suspectShare = 8  // a node is suspected if at most one in so many was new

	sampleEvery = 16           // one in so many pages is compared where no vain page was found lately
	alertOwn    = 8            // pages of a pattern that are compared after a vain one
	alertAbove  = 2            // pages of the directories above and of the domain that are compared after a vain one
	maxAlert    = 32           // pages that are compared at most after the last vain page
	knownAfter  = suspectAfter // compared pages of a node before it is only sampled

	hopelessAfter = 32 // judged responses of all patterns below a directory
	hopelessShare = 20 // a directory is hopeless if at most one in so many was new

	maxVain      = 8  // consecutive vain pages on the path to a URL that make its pattern endless
	someVain     = 2  // consecutive vain pages from which on a pattern's URLs are fetched one at a time
	maxCrossHost = 32 // vain pages of a pattern on many hosts, each found on a vain page of another host
)

// An Outcome is the result of fetching a URL.
type Outcome uint8

// Outcomes.
const (
	Inconclusive  Outcome = iota // no response, or one that does not count: an error, a redirect, a text not compared
	NewText                      // a page with a new text
	NearDuplicate                // nearly the text of another page of the domain
	Duplicate                    // the text of another page of the domain
)

// A Verdict is the decision about a URL.
type Verdict uint8

// Verdicts.
const (
	Fetch   Verdict = iota
	Wait            // until fetches in progress end
	Defer           // until the host has no other pending URLs
	Exclude         // skip the URL: its pattern is endless
)

// A Detector holds the state of all domains. Its methods are safe for concurrent use.
type Detector struct {
	cfg Config

	mu         sync.Mutex
	young, old map[string]*domain // old: not used since young was started
	size       int                // of young
	scratch    scratch

	released map[string]bool // immutable
}

// New returns a detector without any state.
func New(cfg Config) *Detector {
	cfg.Hosts, cfg.Names = cmp.Or(cfg.Hosts, DefaultHosts), cmp.Or(cfg.Names, DefaultNames)
	if cfg.Patterns <= 0 {
		cfg.Patterns = 1 << 10
	}
	if cfg.Memory <= 0 {
		cfg.Memory = 1 << 15
	}
	d := &Detector{cfg: cfg, young: map[string]*domain{}, released: map[string]bool{}}
	for _, pattern := range cfg.Released {
		d.released[pattern] = true
	}
	return d
}

// Domain returns the registered domain of a URL's host.
func (d *Detector) Domain(u weburl.URL) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.scratch.domain(u.Hostname())
}

// A budget limits the vain pages of a pattern.
type budget struct {
	remaining int32  // points left
	inFlight  int32  // URLs that are being fetched
	tried     uint32 // judged responses
	fresh     uint32 // of these, those with a new text
	crossHost uint32 // of these, vain pages that were found on a vain page of another host
	suspected bool   // the budget was used up; a new text resets it
	endless   bool
}

// A Source describes how a URL was found.
type Source struct {
	From     weburl.URL // the page that links to it; zero: none
	Vain     int        // consecutive vain pages on the path to the URL, including From
	Deferred bool       // its host has no other pending URLs
}

// Precheck decides about a URL before any request to its host, from the known state of its pattern. It returns Fetch,
// or Defer or Exclude with the reason.
func (d *Detector) Precheck(u weburl.URL, s Source) (Verdict, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := walk{scratch: &d.scratch, domain: d.domain(u), limit: d.cfg.Patterns}
	if !w.follow(u) {
		return Fetch, ""
	}
	end := w.last().end
	if end == nil || !end.suspected || d.released[w.pattern()] {
		return Fetch, ""
	}
	if v, why := d.judgeSuspect(&w, u, s); v != Wait {
		return v, why
	}
	return Fetch, ""
}

// A Trial is a URL that is being fetched, to be passed to Finish. The zero value is none.
type Trial struct {
	Compare bool // the page's text must be compared with others; otherwise equal bytes suffice

	end       *node // the node at which its pattern ends
	crossHost bool  // it was found on a vain page of another host
}

// Admit decides about a URL that is to be fetched now. It returns the reason for Defer and Exclude. The caller must
// pass the trial to Finish in any case.
func (d *Detector) Admit(u weburl.URL, s Source) (Verdict, Trial, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.walkTo(u)
	end := w.last().end
	switch {
	case !end.suspected && (end.remaining >= startBudget || end.inFlight < end.remaining):
	case d.released[w.pattern()]:
	case !end.suspected:
		return Wait, Trial{}, ""
	default:
		if v, why := d.judgeSuspect(&w, u, s); v != Fetch {
			return v, Trial{}, why
		}
		w = d.walkTo(u) // judgeSuspect has changed the scratch
	}
	compare := s.Vain > 0 || s.Deferred || w.mustCompare()
	end.inFlight++
	return Fetch, Trial{compare, w.last(), s.Vain > 0 && s.From.Host() != u.Host()}, ""
}

// judgeSuspect decides about a URL of a suspected pattern, at the end of w. It invalidates the walk.
func (d *Detector) judgeSuspect(w *walk, u weburl.URL, s Source) (Verdict, string) {
	if !s.Deferred {
		return Defer, ""
	}
	end, why := w.last().end, evidence(w)
	of := d.budgetOf(s.From, w.domain)
	if s.Vain == 0 && of != end {
		return Fetch, "" // linked from a page of another pattern that is not vain
	}
	stranger := s.Vain > 0 && s.From.Host() != u.Host()
	if s.Vain < maxVain && end.crossHost < maxCrossHost && !end.endless {
		if (stranger || s.Vain > someVain) && end.inFlight > 0 {
			return Wait, ""
		}
		return Fetch, ""
	}
	end.endless = true
	if of != nil && s.Vain > 1 { // the page before was found on a vain page, too
		of.endless = true
	}
	return Exclude, why
}

// budgetOf returns the budget of a page's pattern; nil if the pattern is unknown or belongs to another domain.
func (d *Detector) budgetOf(page weburl.URL, dom *domain) *budget {
	if page.Host() == "" || d.domain(page) != dom {
		return nil
	}
	if n := d.endNode(page, dom); n != nil {
		return n.end
	}
	return nil
}

// endNode returns the node at which a URL of a domain ends; nil if it is unknown.
func (d *Detector) endNode(u weburl.URL, dom *domain) *node {
	w := walk{scratch: &d.scratch, domain: dom, limit: d.cfg.Patterns}
	if !w.follow(u) {
		return nil
	}
	return w.last()
}

// Finish records the outcome of a trial. It must be called once.
func (d *Detector) Finish(t Trial, o Outcome) {
	if t.end == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	end := t.end.end
	end.inFlight = max(end.inFlight-1, 0)
	if o == Inconclusive {
		return
	}
	fresh := uint32(0)
	if o == NewText {
		fresh = 1
	} else if t.crossHost {
		end.crossHost++
	}
	more := uint8(alertOwn)
	for n := t.end; n != nil; n = n.parent {
		n.count(1, fresh)
		if fresh > 0 {
			n.alert = max(n.alert, 1) - 1
		} else {
			n.alert = min(n.alert+more, maxAlert)
		}
		more = alertAbove
	}
	end.record(o)
}

// count adds judged responses; fresh is the number of those with a new text.
func (n *node) count(tried, fresh uint32) {
	if p := n.parent; p != nil {
		if n.tried == 0 && tried > 0 {
			p.branches++
		}
		if n.fresh == 0 && fresh > 0 {
			p.productive++
		}
	}
	n.tried += tried
	n.fresh += fresh
}

func (b *budget) record(o Outcome) {
	b.tried++
	switch o {
	case NewText:
		b.fresh++
		b.remaining = min(max(b.remaining, 0)+gainNew, maxBudget)
		b.suspected = false
		return
	case Duplicate:
		b.remaining -= costSame
	default:
		b.remaining -= costNear
	}
	b.suspected = b.suspected || b.remaining <= 0
}

// mustCompare reports whether the text of the page at the end of the walk must be compared.
func (w *walk) mustCompare() bool {
	if w.last().end.remaining < startBudget {
		return true
	}
	var known *node // the innermost one that is known well enough
	for _, n := range w.path {
		if n.alert > 0 {
			return true
		}
		if n.tried >= knownAfter {
			known = n
		}
	}
	if known == nil {
		return true
	}
	known.admitted++
	return splitmix.Mix(uint64(known.admitted))%sampleEvery == 0 // irregular: visits may alternate between patterns
}

// Pattern returns the pattern in a reason that Precheck, Admit, CheckName or CheckHost returned; "" if there is none.
func Pattern(why string) string {
	pattern, evidence, found := strings.Cut(why, ": ")
	if !found || evidence == "" || strings.Contains(pattern, " ") {
		return ""
	}
	return pattern
}

func evidence(w *walk) string {
	tried, fresh := w.last().end.tried, w.last().end.fresh
	for n := w.last(); w.inRest && n != nil; n = n.parent { // the directory is the evidence for its {rest}
		if tried, fresh = n.tried, n.fresh; tried >= hopelessAfter {
			break
		}
	}
	return fmt.Sprintf("%s: %s, %d new; endless", w.pattern(), stats.Count(int64(tried), "pages"), fresh)
}

// walkTo goes to the end of a URL, and creates missing nodes.
func (d *Detector) walkTo(u weburl.URL) walk {
	dom := d.domain(u)
	before := dom.nodes
	w := walk{scratch: &d.scratch, domain: dom, limit: d.cfg.Patterns, make: true}
	w.follow(u)
	d.size += dom.nodes - before
	if n := w.last(); n.end == nil {
		n.setEnd(budget{remaining: w.initialBudget()})
	}
	return w
}

// initialBudget returns the budget of an unknown pattern.
func (w *walk) initialBudget() int32 {
	if w.loops {
		return suspectBudget
	}
	known := false // a node below had enough responses and was productive
	for i := len(w.path) - 1; i >= 0; i-- {
		n := w.path[i]
		if n.tried >= suspectAfter && !known {
			if n.fresh <= n.tried/suspectShare {
				return suspectBudget
			}
			known = true
		}
		if n.fresh > 0 && i+1 < len(w.path) && w.path[i+1].fresh > 0 {
			break // the walk's own branch is productive
		}
		if n.branches >= suspectAfter && n.productive <= n.branches/suspectShare {
			return suspectBudget
		}
	}
	return startBudget
}

// domain returns the state of a URL's registered domain and port.
func (d *Detector) domain(u weburl.URL) *domain {
	name := d.scratch.domain(u.Hostname())
	if port := u.Port(); port != "" {
		d.scratch.buf = append(append(append(d.scratch.buf[:0], name...), ':'), port...)
		name = d.scratch.text(d.scratch.buf)
	}
	return d.domainByName(name)
}

func (d *Detector) domainByName(name string) *domain {
	dom := d.young[name]
	if dom != nil {
		return dom
	}
	if dom = d.old[name]; dom == nil {
		dom = &domain{name: strings.Clone(name)}
	}
	delete(d.old, name)
	if d.size >= d.cfg.Memory {
		d.old, d.young, d.size = d.young, map[string]*domain{}, 0
	}
	d.young[dom.name] = dom
	d.size += 1 + dom.nodes + dom.hosts.memory() + dom.areas.memory()
	return dom
}
