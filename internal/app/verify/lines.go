package verify

import (
	"net/http"
	"slices"
	"time"

	"kumo/internal/base/weburl"
	"kumo/internal/state/seen"
)

// page checks a line of pages.jsonl.
func (g *group) page(f *fact) {
	const name = "pages.jsonl"
	g.pages = append(g.pages, listed{*f, -1, false})
	if f.File < 0 {
		return // the page must not be archived, or the run wrote no WARC files
	}
	c := g.captureAt(checkPages, name, f)
	if c == nil {
		return
	}
	if c.paged {
		g.fault(checkPages, name, f.At, "a second line for the same record")
	}
	c.paged = true
	g.pages[len(g.pages)-1].record = slices.IndexFunc(g.captures, func(o capture) bool {
		return o.Offset == c.Offset &&
			o.File == c.File
	})
	g.compare(checkPages, name, f, c, []difference{
		{"digest", c.Digest != digest{} && f.Digest != c.Digest},
		{"status", !c.has(flagResource) && f.Status != c.Status},
		{"revisit", !c.has(flagResource) && f.has(flagRevisit) != c.has(flagRevisit)},
		{"title, charset, lang, from, h1, description, canonical or number of links", c.has(flagWords) && f.Words != c.Words},
	})
}

// pageOf returns the page line that a line of another file refers to. If there is none, it returns nil and reports a
// fault.
func (g *group) pageOf(check, name string, f *fact) *listed {
	i := slices.IndexFunc(g.pages, func(p listed) bool { return p.Time == f.Time })
	if i >= 0 {
		return &g.pages[i]
	}
	if !g.v.tally.unlisted {
		g.fault(check, name, f.At, "pages.jsonl has no line of this visit")
	}
	return nil
}

func (g *group) fields(f *fact) {
	const name = "fields.jsonl"
	if p := g.pageOf(checkFields, name, f); p != nil && f.File >= 0 && (p.File != f.File || p.Offset != f.Offset) {
		g.fault(checkFields, name, f.At, "pages.jsonl has another location of the page's record")
	}
}

// visit checks a line of crawl.log.
func (g *group) visit(f *fact) {
	const name = "crawl.log"
	if f.has(flagRobots) {
		g.robotsVisit(f)
		return
	}
	g.visited = true
	if f.Status > 0 {
		if g.recrawled = g.answered.Status > 0; f.Time >= g.answered.Time {
			g.answered = *f
		}
		if f.Status == http.StatusOK {
			g.fetched, g.body = true, f.Digest
		}
	}
	if g.entry != nil && g.entry.Fetched.Unix() == time.UnixMicro(f.Time).Unix() {
		g.lastVisitFound = true
	}
	if !f.has(flagAnswer) {
		return
	}
	for i := range g.pages {
		p := &g.pages[i]
		if p.visited || p.Time != f.Time || p.Digest != f.Digest || p.Length != f.Length || f.Status >= 0 &&
			f.Status != p.Status {
			continue
		}
		p.visited = true
		typed := f.Status != http.StatusNotModified // an earlier version may have written the type of the response
		if typed && p.ID != f.ID || p.record >= 0 && g.captures[p.record].has(flagWords) &&
			g.captures[p.record].Trail != f.Trail {
			g.fault(checkLog, name, f.At, "type, path, via, seed or duration differ from pages.jsonl or the "+
				"metadata record")
		}
		return
	}
	if !g.v.tally.unlisted {
		g.fault(checkLog, name, f.At, "pages.jsonl has no line of this visit with its time, status, size and digest")
	}
}

// robotsVisit finds the record of a visit for robots.txt, which has no line in pages.jsonl.
func (g *group) robotsVisit(f *fact) {
	for i := range g.captures {
		c := &g.captures[i]
		if !c.paged && c.Trail == f.Trail && (c.Digest == digest{} || c.Digest == f.Digest) &&
			(c.has(flagResource) || f.Status < 0 || c.Status == f.Status) {
			c.paged = true
			return
		}
	}
}

// skip checks that an excluded URL was not fetched, except through a better or later link.
func (g *group) skip(f *fact) {
	const name = "skipped.jsonl"
	g.skipped = true
	if g.lastSkip == f.Time && !f.has(flagFailed) {
		g.fault(checkSkipped, name, f.At, "a second line for the same exclusion")
	}
	g.lastSkip = f.Time
	if f.has(flagFailed) || g.entry != nil && !g.entry.Due.IsZero() {
		return // it may have been retried
	}
	for i := range g.pages {
		if p := &g.pages[i]; f.has(flagPermanent) || p.Time < f.Time {
			g.fault(checkSkipped, name, f.At, "it was excluded, but was fetched according to pages.jsonl at byte %d", p.At)
		}
	}
}

func (g *group) addPending(f *fact) {
	const name = "state/frontier"
	if g.pending = true; g.v.Seen == nil {
		return
	}
	switch {
	case !fetchable(g.url):
		g.v.add(Fault{Check: checkFrontier, File: name, Offset: -1, URL: g.url,
			What: "it is pending, though it cannot be fetched: an earlier version admitted it, and the next run drops it"})
	case g.entry == nil:
		g.fault(checkFrontier, name, -1, "it is pending, but not in the URL database")
	case g.entry.State != seen.Known:
		g.fault(checkFrontier, name, -1, "it is pending, but excluded in the URL database")
	case !g.entry.Fetched.IsZero() && !f.has(flagRecrawl):
		g.fault(checkFrontier, name, -1, "it is pending, but fetched at %v in the URL database", g.entry.Fetched)
	}
}

// check reports missing claims after all claims were added.
func (g *group) check() {
	for i := range g.captures {
		g.checkCapture(&g.captures[i])
	}
	for i := range g.pages {
		if p := &g.pages[i]; !p.visited {
			g.fault(checkPages, "pages.jsonl", p.At, "crawl.log has no line of this visit with its time, status, size "+
				"and digest")
		}
	}
	if g.v.Seen != nil {
		g.checkEntry()
	}
}

func (g *group) checkCapture(c *capture) {
	file := g.v.files.path(c.File)
	if f := &g.v.files.all[c.File]; !c.paged && !f.unlisted {
		g.fault(checkWARC, file, c.Offset, "no line of pages.jsonl refers to the record, nor does it match a visit for "+
			"robots.txt in crawl.log")
	}
	if c.has(flagResource) {
		return
	}
	if f := &g.v.files.all[c.File]; !c.indexed && !f.unindexed {
		g.fault(checkCDXJ, file, c.Offset, "the record has no line in the index of its file")
	}
	if f := &g.v.files.all[c.File]; !c.merged && f.merged > 0 {
		g.fault(checkCDXJ, file, c.Offset, "the record has no line in "+mergedIndex)
	}
}

// matchesDatabase reports whether the database has the result of the last visit. An unchanged page keeps its status; an
// error does not replace the digest of an earlier page.
func (g *group) matchesDatabase(e *seen.Entry) bool {
	last := &g.answered
	switch {
	case g.unmodified():
		return e.Status == http.StatusOK && e.Digest == last.Digest
	// another node fetched the page
	case g.v.Shared && last.Status == http.StatusNotModified && e.Status == http.StatusOK:
		return e.Digest == last.Digest
	}
	return e.Status == last.Status && (e.Digest == last.Digest || g.recrawled && last.Status >= 400)
}

// unmodified reports whether the last visit found the page unchanged. The digest differs if the server sent a 304
// without being asked.
func (g *group) unmodified() bool {
	return g.answered.Status == http.StatusNotModified && g.fetched && g.answered.Digest == g.body
}

// hasMoved reports whether the URL's host, with its queue, has moved to another node since the URL was admitted.
func (g *group) hasMoved() bool {
	s := g.v.State
	return g.v.Shared && s != nil && (s.IsAway(g.url) || s.WasReleased(g.url, g.entry.Tenure))
}

// checkEntry compares the entry in the URL database with the files.
func (g *group) checkEntry() {
	const name = "state/seen"
	e := g.entry
	if e == nil {
		if g.visited || g.skipped || g.deferred {
			g.fault(checkSeen, name, -1, "it was fetched or excluded, but is not in the URL database")
		}
		return
	}
	g.v.tally.entry(e)
	fetched := !e.Fetched.IsZero()
	switch {
	case fetched && !g.lastVisitFound && g.v.Shared:
		// Fetched by the node that owned the host then.
	case fetched && !g.lastVisitFound:
		g.fault(checkSeen, name, -1, "fetched at %v in the URL database, but crawl.log has no visit then",
			e.Fetched)
	case g.answered.Status > 0 && !g.matchesDatabase(e):
		left := ""
		if g.unmodified() {
			left = " (unchanged, with status 200)"
		}
		g.fault(checkSeen, name, -1, "crawl.log at byte %d has status %d%s and sha1:%v, the URL database %d and sha1:%v",
			g.answered.At, g.answered.Status, left, g.answered.Digest, e.Status, digest(e.Digest))
	case e.State == seen.Known && !fetched && !g.pending && !g.skipped && !g.pendingDedup && g.v.Shared:
		if !g.hasMoved() {
			g.v.add(Fault{Check: checkURLs, File: name, Offset: -1, URL: g.url,
				What: "it is known, but no file here has its outcome: another node may have excluded it, according to " +
					"its skipped.jsonl"})
		}
	case e.State == seen.Known && !fetched && !fetchable(g.url):
		// An earlier version admitted it, and it was dropped.
	case e.State == seen.Known && !fetched && !g.pending && !g.skipped && !g.pendingDedup:
		g.fault(checkURLs, name, -1, "it is known, but neither fetched, excluded nor pending: it is lost")
	case e.State == seen.Deferred && !g.skipped && !g.deferred && !g.pendingDedup && !g.v.Shared:
		g.fault(checkURLs, name, -1, "it is known as excluded, but neither skipped.jsonl nor state/deferred has the reason")
	}
}

// fetchable reports whether a crawl can fetch the URL.
func fetchable(url string) bool {
	u, err := weburl.Parse(url)
	return err == nil && u.IsHTTP()
}
