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

	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
)

// Config bounds a detector. The zero value gives the defaults.
type Config struct {
	Hosts    int64 // of a registered domain from which anything is fetched; DefaultHosts; negative: without limit
	Names    int64 // of a registered domain that are looked up; DefaultNames; negative: without limit
	Patterns int   // places in the tree of a domain; 1,024
	Memory   int   // places of all domains together that are remembered at least, of 200 bytes about; 32,768

	// patterns whose URLs are fetched whatever they bring, as [Pattern] has them
	Released []string
}

// The bounds of a registered domain unless others are set.
const (
	DefaultHosts = 100_000
	DefaultNames = 200_000
)

const (
	startBudget   = 20 // of a pattern of which nothing is known
	suspectBudget = 3  // of one whose path goes round, or beside which nothing new was found
	maxBudget     = 32
	gainNew       = 8 // for what is new
	costSame      = 2 // for what has the same text as another page
	costNear      = 1 // for what has nearly the same

	suspectAfter = 16 // answers of all patterns below a place
	suspectShare = 8  // of which one in so many, at most, was new

	hopelessAfter = 32 // answers of all patterns below a directory
	hopelessShare = 20 // of which one in so many, at most, was new

	maxVain      = 8  // pages in vain in a row that led to a URL, from which on its pattern is endless
	someVain     = 2  // of these, from which on a pattern's URLs are fetched one by one
	maxCrossHost = 32 // pages in vain of a pattern of many hosts, each found on one of another host
)

// An Outcome is what came of a URL that was to be fetched.
type Outcome uint8

// The outcomes.
const (
	Inconclusive  Outcome = iota // no answer, or one that says nothing of the pattern: an error, a redirect
	NewText                      // a page with a text of its own
	NearDuplicate                // nearly that of another page of the domain
	Duplicate                    // that of another page of the domain
)

// A Verdict says what is to become of a URL.
type Verdict uint8

// The verdicts.
const (
	Fetch   Verdict = iota
	Wait            // for what is under way
	Defer           // until nothing else waits at the host
	Exclude         // leave it out: the pattern has no end
)

// A Detector is what is known of all domains. Its methods may be called by many goroutines at once.
type Detector struct {
	cfg Config

	mu         sync.Mutex
	young, old map[string]*domain // old are those that nobody has asked for since young was begun
	size       int                // of the young ones
	scratch    scratch

	released map[string]bool // never changed
}

// New makes one that knows nothing.
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

// Domain is the registered domain of a URL's host.
func (d *Detector) Domain(u weburl.URL) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.scratch.domain(u.Hostname())
}

// A budget is what a pattern may still fetch in vain.
type budget struct {
	remaining int32  // of the budget
	inFlight  int32  // URLs that are being fetched
	tried     uint32 // answers that were judged
	fresh     uint32 // of these, those that were new
	crossHost uint32 // of these, those in vain that were found on a page in vain of another host
	suspected bool   // it was used up: the pattern is suspected; what is new opens it again
	endless   bool
}

// A Source says how a URL was found.
type Source struct {
	From     weburl.URL // the page that links to it; the zero value if there is none
	Vain     int        // pages in vain in a row on the way to it, From among them
	Deferred bool       // nothing else waits at its host
}

// Precheck asks for a URL before anything is asked of its host, for what is known of its pattern: Fetch, or Defer or Cut
// and why.
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

// A Trial is a URL that is being fetched, for Settle. The zero value is none.
type Trial struct {
	end       *node // where its pattern ends
	crossHost bool  // it was found on a page in vain of another host
}

// Admit asks for a URL that is to be fetched now, and says why where it is deferred or cut off. Settle is to be told what
// came of the trial, whatever that is.
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
		w = d.walkTo(u) // suspect has walked elsewhere
	}
	end.inFlight++
	return Fetch, Trial{w.last(), s.Vain > 0 && s.From.Host() != u.Host()}, ""
}

// judgeSuspect decides on a URL of a suspected pattern, where w ends. The walk is of no use afterwards.
func (d *Detector) judgeSuspect(w *walk, u weburl.URL, s Source) (Verdict, string) {
	if !s.Deferred {
		return Defer, ""
	}
	end, why := w.last().end, evidence(w)
	of := d.budgetOf(s.From, w.domain)
	if s.Vain == 0 && of != end {
		return Fetch, "" // a page that is not of the pattern links to it
	}
	stranger := s.Vain > 0 && s.From.Host() != u.Host()
	if s.Vain < maxVain && end.crossHost < maxCrossHost && !end.endless {
		if (stranger || s.Vain > someVain) && end.inFlight > 0 {
			return Wait, ""
		}
		return Fetch, ""
	}
	end.endless = true
	if of != nil && s.Vain > 1 { // the page before was found in vain, too
		of.endless = true
	}
	return Exclude, why
}

// budgetOf is the budget of a page's pattern, nil if nothing is known of it or it is of another domain.
func (d *Detector) budgetOf(page weburl.URL, dom *domain) *budget {
	if page.Host() == "" || d.domain(page) != dom {
		return nil
	}
	if n := d.endNode(page, dom); n != nil {
		return n.end
	}
	return nil
}

// endNode is where a URL of a domain ends, nil if that is not known.
func (d *Detector) endNode(u weburl.URL, dom *domain) *node {
	w := walk{scratch: &d.scratch, domain: dom, limit: d.cfg.Patterns}
	if !w.follow(u) {
		return nil
	}
	return w.last()
}

// Finish says what came of a trial, once.
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
	for n := t.end; n != nil; n = n.parent {
		n.count(1, fresh)
	}
	end.record(o)
}

// count counts answers that were judged, of which so many were new.
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

// Pattern is the pattern that a reason names which Enter, Ask, CheckName or Reach has given; "" if it is none of theirs.
func Pattern(why string) string {
	pattern, evidence, found := strings.Cut(why, ": ")
	if !found || evidence == "" || strings.Contains(pattern, " ") {
		return ""
	}
	return pattern
}

func evidence(w *walk) string {
	tried, fresh := w.last().end.tried, w.last().end.fresh
	for n := w.last(); w.inRest && n != nil; n = n.parent { // what tells there is the directory
		if tried, fresh = n.tried, n.fresh; tried >= hopelessAfter {
			break
		}
	}
	return fmt.Sprintf("%s: %s, %d new; endless", w.pattern(), stats.Count(int64(tried), "pages"), fresh)
}

// walkTo goes to where a URL ends, and makes what is not there.
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

// initialBudget is the budget of a pattern of which nothing is known.
func (w *walk) initialBudget() int32 {
	if w.loops {
		return suspectBudget
	}
	known := false // whether what lies below is worth it
	for i := len(w.path) - 1; i >= 0; i-- {
		n := w.path[i]
		if n.tried >= suspectAfter && !known {
			if n.fresh <= n.tried/suspectShare {
				return suspectBudget
			}
			known = true
		}
		if n.fresh > 0 && i+1 < len(w.path) && w.path[i+1].fresh > 0 {
			break // the branch that it lies on has brought something
		}
		if n.branches >= suspectAfter && n.productive <= n.branches/suspectShare {
			return suspectBudget
		}
	}
	return startBudget
}

// domain is what is known of a URL's registered domain, at its port.
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
