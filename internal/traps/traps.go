// Package traps learns which URLs of a site lead nowhere: a calendar without end, session ids in paths, paths that go
// round, a name server that knows every name.
//
// Each URL has a pattern: its host, the directories of its path and the names in its query, with classes in the place
// of what differs from URL to URL ({n}, {date}, {id}, {word}). A registered domain's patterns are a tree with a bound:
// of a place in it so many names are kept, all others are {word}. A pattern has a budget. What is fetched takes from it
// where it brought nothing new (the same text as another page of the domain, or nearly), and adds to it where it did.
// What has used its budget up is left out, but for a few URLs in ever greater distances, by which a pattern that has
// become worth it is known. A pattern beside others that brought nothing, and a path that goes round, begin with a
// smaller budget; below a directory where hardly anything was new, no more patterns are told apart.
//
// A [Detector] knows no clock and no chance: told the same in the same order, it answers the same. It is the idea of
// sampling a site's URL patterns for duplicates (Bar-Yossef, Keidar, Schonfeld, "Do Not Crawl in the DUST", WWW 2007)
// put to use while the crawl goes on, without rules that rewrite URLs: what is left out is said, and can be let in.
package traps

import (
	"fmt"
	"strings"
	"sync"

	"kumo/internal/stats"
	"kumo/internal/weburl"
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
	startBudget   = 24 // of a pattern of which nothing is known
	suspectBudget = 3  // of one whose path goes round, or beside which nothing new was found
	maxBudget     = 40
	gain          = 8 // for what is new
	costSame      = 2 // for what has the same text as another page
	costNear      = 1 // for what has nearly the same

	suspectAfter = 16 // answers of all patterns below a place
	suspectShare = 8  // of which one in so many, at most, was new

	hopelessAfter = 32 // answers of all patterns below a directory
	hopelessShare = 20 // of which one in so many, at most, was new

	firstProbe = 32 // URLs left out until one is tried again; then twice as many
)

// An Outcome is what came of a URL that was to be fetched.
type Outcome uint8

// The outcomes.
const (
	Nothing Outcome = iota // no answer, or one that says nothing of the pattern: an error, a redirect
	Fresh                  // a page with a text of its own
	Near                   // nearly that of another page of the domain
	Same                   // that of another page of the domain
)

// A Verdict says what is to become of a URL.
type Verdict uint8

// The verdicts.
const (
	Fetch Verdict = iota
	Wait          // what is under way will tell
	Leave
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
	if cfg.Hosts == 0 {
		cfg.Hosts = DefaultHosts
	}
	if cfg.Names == 0 {
		cfg.Names = DefaultNames
	}
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
	left     int32  // of the budget
	underWay int32  // URLs that are being fetched
	out      uint32 // URLs left out since the last that was tried
	wait     uint32 // of these until the next is
	tried    uint32 // answers that were judged
	fresh    uint32 // of these, those that were new
	closed   bool   // it was used up; what is new opens it again
}

// Enter asks for a URL before anything is asked of its host, for what is known of its pattern. It says why it is left
// out; "" if it is not.
func (d *Detector) Enter(u weburl.URL) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := walk{scratch: &d.scratch, domain: d.domain(u), limit: d.cfg.Patterns}
	if !w.along(u) {
		return ""
	}
	end := w.last().end
	if end == nil || !end.closed || end.out+1 >= end.wait || d.released[w.pattern()] {
		return ""
	}
	end.out++
	return evidence(&w)
}

// A Trial is a URL that is being fetched, for Settle. The zero value is none.
type Trial struct {
	of *node // where its pattern ends
}

// Ask asks for a URL that is to be fetched now, and says why where it is left out. Settle is to be told what came of
// the trial, whatever that is.
func (d *Detector) Ask(u weburl.URL) (Verdict, Trial, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.walkTo(u)
	end := w.last().end
	switch {
	case !end.closed, d.released[w.pattern()]:
		if end.left < startBudget && end.underWay >= end.left && !d.released[w.pattern()] {
			return Wait, Trial{}, ""
		}
	case end.out+1 < end.wait:
		end.out++
		return Leave, Trial{}, evidence(&w)
	case end.underWay > 0:
		return Wait, Trial{}, ""
	default: // one is tried again
		end.out, end.wait = 0, min(2*end.wait, 1<<30)
	}
	end.underWay++
	return Fetch, Trial{w.last()}, ""
}

// Settle says what came of a trial, once.
func (d *Detector) Settle(t Trial, o Outcome) {
	if t.of == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	end := t.of.end
	end.underWay = max(end.underWay-1, 0)
	if o == Nothing {
		return
	}
	fresh := uint32(0)
	if o == Fresh {
		fresh = 1
	}
	for n := t.of; n != nil; n = n.parent {
		n.count(1, fresh)
	}
	end.settle(o)
}

// count counts answers that were judged, of which so many were new.
func (n *node) count(tried, fresh uint32) {
	if p := n.parent; p != nil {
		if n.tried == 0 && tried > 0 {
			p.branches++
		}
		if n.fresh == 0 && fresh > 0 {
			p.good++
		}
	}
	n.tried += tried
	n.fresh += fresh
}

func (b *budget) settle(o Outcome) {
	b.tried++
	switch o {
	case Fresh:
		b.fresh++
		b.left = min(max(b.left, 0)+gain, maxBudget)
		b.closed = false
		return
	case Same:
		b.left -= costSame
	default:
		b.left -= costNear
	}
	if b.left <= 0 && !b.closed {
		b.closed, b.out, b.wait = true, 0, max(b.wait, firstProbe)
	}
}

// Pattern is the pattern that a reason names which Enter or Ask has given; "" if it is none of theirs.
func Pattern(why string) string {
	pattern, evidence, found := strings.Cut(why, ": ")
	if !found || evidence == "" || strings.Contains(pattern, " ") {
		return ""
	}
	return pattern
}

func evidence(w *walk) string {
	tried, fresh := w.last().end.tried, w.last().end.fresh
	for n := w.last(); w.ended && n != nil; n = n.parent { // what tells there is the directory
		if tried, fresh = n.tried, n.fresh; tried >= hopelessAfter {
			break
		}
	}
	return fmt.Sprintf("%s: %s, %d new", w.pattern(), stats.Count(int64(tried), "pages"), fresh)
}

// walkTo goes to where a URL ends, and makes what is not there.
func (d *Detector) walkTo(u weburl.URL) walk {
	dom := d.domain(u)
	before := dom.nodes
	w := walk{scratch: &d.scratch, domain: dom, limit: d.cfg.Patterns, make: true}
	w.along(u)
	d.size += dom.nodes - before
	if n := w.last(); n.end == nil {
		n.ends(budget{left: w.begins()})
	}
	return w
}

// begins is the budget of a pattern of which nothing is known.
func (w *walk) begins() int32 {
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
		if n.branches >= suspectAfter && n.good <= n.branches/suspectShare {
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
	return d.named(name)
}

func (d *Detector) named(name string) *domain {
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
	d.size += 1 + dom.nodes + dom.hosts.places()
	return dom
}
