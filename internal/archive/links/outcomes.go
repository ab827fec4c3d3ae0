package links

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"strings"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/state/store"
	"kumo/internal/state/store/crawllog"
	"kumo/internal/state/store/jsonl"
)

// An outcome is the outcome of a URL that failed or redirects.
type outcome struct {
	status int    // HTTP status; 0 if there is no response
	reason string // why there is none
	next   string // target of the redirect
}

// outcomes has the outcomes of a crawl's URLs, by hash.
type outcomes struct {
	seed       maphash.Seed
	limit      int
	overflowed bool // there were more than the limit
	of         map[uint64]outcome
	revisited  map[uint64]int64  // pages visited several times: time of the last visit, in ms
	hosts      map[uint64]bool   // visited by the crawl
	interned   map[string]string // strings shared by many outcomes
	checks     map[uint64]bool   // external URLs that were checked
}

func newOutcomes(most int) *outcomes {
	return &outcomes{seed: maphash.MakeSeed(), limit: most, of: map[uint64]outcome{}, revisited: map[uint64]int64{},
		hosts: map[uint64]bool{}, interned: map[string]string{}, checks: map[uint64]bool{}}
}

func (o *outcomes) hash(url string) uint64 { return maphash.String(o.seed, url) }

func (o *outcomes) at(url string) (outcome, bool) {
	out, ok := o.of[o.hash(url)]
	return out, ok
}

func (o *outcomes) set(url string, out outcome) {
	h := o.hash(url)
	if _, known := o.of[h]; !known && len(o.of) >= o.limit {
		o.overflowed = true
		return
	}
	word, ok := o.interned[out.reason]
	if !ok {
		word = strings.Clone(out.reason)
		o.interned[word] = word
	}
	out.reason, out.next = word, strings.Clone(out.next)
	o.of[h] = out
}

// maxHops limits the redirects that are followed in a row.
const maxHops = 50

// A chain is the result of following redirects from a URL.
type chain struct {
	outcome
	hops []string // without the URL itself
}

// end follows redirects from a URL.
func (o *outcomes) end(url string) (c chain) {
	for at := url; ; {
		out, known := o.at(at)
		if !known { // it succeeded, or is unknown
			c.outcome = outcome{}
			return c
		}
		c.outcome = out
		switch {
		case out.next == "":
			return c
		case out.next == url || slices.Contains(c.hops, out.next):
			c.hops = append(c.hops, out.next)
			c.outcome = outcome{reason: reasonLoop}
			return c
		case len(c.hops) == maxHops:
			c.outcome = outcome{reason: "redirects"}
			return c
		}
		at = out.next
		c.hops = append(c.hops, at)
	}
}

// broken reports whether a chain ends with a failure. Status 429 is temporary and does not count.
func (c chain) broken() bool {
	switch c.status {
	case http.StatusTooManyRequests:
		return false
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true // redirect without target
	}
	return c.reason != "" || c.status >= http.StatusBadRequest
}

func (c chain) passes(url string) bool { return slices.Contains(c.hops, url) }

func (c chain) fill(l *Link) { l.Status, l.Error, l.Redirects = c.status, c.reason, c.hops }

// pagesName is the file with a line for each response.
const pagesName = "pages.jsonl"

// A Target is what became of a URL that links lead to.
type Target struct {
	Status    int      // of the response after redirects; 0 if there is none, or if the URL did not fail
	Error     string   // why there is none
	Redirects []string // targets of the redirects, in order
	Broken    bool     // the URL leads to an error or round in circles
}

// Follow returns what became of a URL, if it failed or redirects; else the zero Target.
func (f *Finder) Follow(url string) Target {
	c := f.known.end(url)
	return Target{c.status, c.reason, c.hops, c.broken()}
}

// EachVisit calls f with the line of pages.jsonl of each URL's last visit, without robots.txt files and answers that a
// page has not changed. A crash may have left two lines of a URL.
func (f *Finder) EachVisit(ctx context.Context, call func(*jsonl.PageLine) error) error {
	if _, err := f.cfg.Disk.Size(f.path(pagesName)); err != nil {
		return err
	}
	return f.eachLine(ctx, pagesName, func(text []byte) error {
		p, err := jsonl.ParsePage(text)
		if err != nil || p.Status == http.StatusNotModified || strings.HasSuffix(p.URL, "/robots.txt") {
			return nil //nolint:nilerr // kumo verify reports the line
		}
		last, again := f.known.revisited[f.known.hash(p.URL)]
		if again && p.Time.UnixMilli() < last {
			return nil
		}
		return call(&p)
	})
}

// Canonical returns a URL in the crawl's canonical form.
func (f *Finder) Canonical(url string) string { return f.canonical(&outlink{raw: url}) }

// reasons maps the negative codes of crawl.log to the names of page.Failure, if there is one.
var reasons = map[int]string{-1: string(page.DNS), -2: string(page.Connect), -3: string(page.Reset),
	-4: string(page.Timeout), -5: string(page.Internal), -8: string(page.Unreachable), -61: string(page.NoRobots),
	-5002: string(page.Private)}

// eachLine calls f with the lines of a file, and reports progress.
func (f *Finder) eachLine(ctx context.Context, name string, line func(text []byte) error) error {
	total, err := f.cfg.Disk.Size(f.path(name))
	if err != nil {
		total = 0
	}
	told := int64(0)
	_, err = store.EachLineOf(f.cfg.Disk, f.path(name), func(text []byte, at int64) error {
		if at-told >= 8<<20 {
			told = at
			f.cfg.Progress(Progress{name, at, total})
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return line(text)
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// readSkips reads failed and excluded URLs, which may have no line in crawl.log.
func (f *Finder) readSkips(ctx context.Context) error {
	return f.eachLine(ctx, "skipped.jsonl", func(text []byte) error {
		if !bytes.Contains(text, []byte(`"rule":"failed"`)) {
			return nil
		}
		if s, err := jsonl.ParseSkip(text); err == nil && s.Rule == "failed" {
			why, _, _ := strings.Cut(s.Why, ":")
			f.known.set(s.URL, outcome{reason: why})
		}
		return nil
	})
}

// readLog reads the result of the last visit of each URL.
func (f *Finder) readLog(ctx context.Context) error {
	return f.eachLine(ctx, "crawl.log", func(text []byte) error {
		e, err := crawllog.Parse(text)
		if err != nil || e.Has("robots") {
			return nil //nolint:nilerr // kumo verify reports the line
		}
		if e.Status > 0 {
			f.known.hosts[f.known.hash(item.HostOf(e.URL))] = true
		}
		switch was, known := f.known.at(e.URL); {
		case e.Status >= 300:
			if e.Status != http.StatusNotModified {
				f.known.set(e.URL, outcome{status: e.Status})
			}
		case e.Status > 0:
			if known {
				delete(f.known.of, f.known.hash(e.URL))
			}
		case !known || was.reason == "":
			f.known.set(e.URL, outcome{reason: cmp.Or(reasons[e.Status], "failed")})
		}
		return nil
	})
}

// readPages reads the targets of redirects, and which pages were visited several times.
func (f *Finder) readPages(ctx context.Context) error {
	if _, err := f.cfg.Disk.Size(f.path(pagesName)); err != nil { // there is no such file
		return f.eachPage(ctx, func(p *pageLinks) error {
			for l := range p.links() {
				if l.kind == page.Redirect.String() {
					f.setRedirect(p.url, l.raw)
				}
			}
			return nil
		})
	}
	return f.eachLine(ctx, pagesName, func(text []byte) error {
		moved := bytes.Contains(text, []byte(`,"status":3`))
		if !moved && !bytes.Contains(text, []byte(`,"recrawl":"`)) {
			return nil
		}
		p, err := jsonl.ParsePage(text)
		if err != nil {
			return nil //nolint:nilerr // kumo verify reports the line
		}
		if p.Final != p.URL || moved && p.Links > 0 { // a redirect to itself: the only link of the page
			f.setRedirect(p.URL, p.Final)
		}
		if p.Recrawl != "" && p.Status != http.StatusNotModified {
			f.known.revisited[f.known.hash(p.URL)] = p.Time.UnixMilli()
		}
		return nil
	})
}

// setRedirect sets the target of a URL whose last visit was a redirect.
func (f *Finder) setRedirect(url, to string) {
	if was, known := f.known.at(url); known && was.status/100 == 3 {
		was.next = to
		f.known.set(url, was)
	}
}

// resolveOutcomes returns the outcomes of links and redirect targets that are not failures in crawl.log.
func (f *Finder) resolveOutcomes(ctx context.Context, all []Link) (map[string]outcome, error) {
	what := map[string]outcome{}
	wanted := map[string]bool{}
	for i := range all {
		c := f.known.end(all[i].URL)
		if n := len(c.hops); n > 0 {
			wanted[c.hops[n-1]] = true
		}
		wanted[all[i].URL] = true
	}
	err := f.eachLine(ctx, "skipped.jsonl", func(text []byte) error {
		if s, err := jsonl.ParseSkip(text); err == nil && wanted[s.URL] {
			what[s.URL] = outcome{reason: s.Rule}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = f.eachLine(ctx, "crawl.log", func(text []byte) error {
		if e, err := crawllog.Parse(text); err == nil && e.Status > 0 && wanted[e.URL] {
			what[e.URL] = outcome{status: e.Status}
		}
		return nil
	})
	for url := range wanted {
		if _, found := what[url]; !found {
			what[url] = f.outcomeOf(url, nil)
		}
	}
	return what, err
}
