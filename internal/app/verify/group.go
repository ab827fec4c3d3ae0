package verify

import (
	"fmt"
	"net/http"
	"slices"

	"kumo/internal/state/seen"
)

// A group combines all claims about one URL. It keeps the few records and pages, and otherwise only the data needed for
// the checks.
type group struct {
	v        *verifier
	url      string
	entry    *seen.Entry // nil if the URL is not in the database
	captures []capture
	pages    []listed

	visited        bool // other than for its robots.txt
	answered       fact // the last visit with a response status
	recrawled      bool // it was not the first
	fetched        bool // a visit had status 200
	body           digest
	lastVisitFound bool // there is a visit at the time of the last visit in the database
	skipped        bool
	deferred       bool
	pending        bool
	pendingDedup   bool
	lastSkip       int64 // time of the last skip
}

type capture struct {
	fact
	indexed, merged, paged bool
	line                   uint64 // hash of its index line
}

type listed struct {
	fact
	record  int  // index in captures, -1 if it has none
	visited bool // crawl.log has it
}

func (g *group) fault(check, file string, at int64, format string, args ...any) {
	g.v.fault(Fault{Check: check, File: file, Offset: at, URL: g.url, What: fmt.Sprintf(format, args...)})
}

func (g *group) add(c *claim) {
	f := readFact(c.body)
	switch c.kind {
	case kindCapture:
		g.captures = append(g.captures, capture{fact: f})
	case kindLine:
		g.line(&f)
	case kindIndex:
		g.merged(&f)
	case kindReference:
		g.reference(&f)
	case kindPage:
		g.page(&f)
	case kindText:
		g.pageOf(checkText, "text.jsonl", &f)
	case kindFields:
		g.fields(&f)
	case kindVisit:
		g.visit(&f)
	case kindSkip:
		g.skip(&f)
	case kindDeferred:
		g.deferred = true
	case kindPending:
		g.addPending(&f)
	case kindPendingDedup:
		g.pendingDedup = true
	}
}

// captureAt returns the URL's record at a location. If there is none, it returns nil and reports a fault, unless the
// file is missing.
func (g *group) captureAt(check, file string, f *fact) *capture {
	for i := range g.captures {
		if c := &g.captures[i]; c.File == f.File && c.Offset == f.Offset {
			return c
		}
	}
	if g.v.files.all[f.File].present {
		g.fault(check, file, f.At, "%s has no record of it at byte %d", g.v.files.path(f.File), f.Offset)
	}
	return nil
}

// line checks a line of a WARC file's index.
func (g *group) line(f *fact) {
	name, _ := g.v.indexOf(f.File)
	c := g.captureAt(checkCDXJ, name, f)
	if c == nil {
		return
	}
	if c.indexed {
		g.fault(checkCDXJ, name, f.At, "a second line for the same record")
	}
	c.indexed = true
	g.agree(name, f, c)
	c.line = f.Words
}

func (g *group) merged(f *fact) {
	c := g.captureAt(checkCDXJ, mergedIndex, f)
	if c == nil {
		return
	}
	if c.merged {
		g.fault(checkCDXJ, mergedIndex, f.At, "a second line for the same record")
	}
	if c.merged = true; c.indexed && f.Words != c.line {
		name, _ := g.v.indexOf(f.File)
		g.fault(checkCDXJ, mergedIndex, f.At, "the line differs from that in %s", name)
	}
}

func (g *group) agree(name string, f *fact, c *capture) {
	const second = 1_000_000
	status := c.Status
	if c.has(flagRevisit) && status == http.StatusNotModified {
		status = http.StatusOK // of the unchanged page
	}
	g.compare(checkCDXJ, name, f, c, []difference{
		{"length", f.Length != c.Length},
		{"time", f.Time != c.Time-c.Time%second},
		{"status", f.Status != status},
		{"digest", f.Sum != c.Sum},
		{"type", f.has(flagRevisit) != c.has(flagRevisit)},
	})
}

// A difference is a possible difference between a line and its record.
type difference struct {
	what  string
	wrong bool
}

func (g *group) compare(check, name string, f *fact, c *capture, all []difference) {
	for _, d := range all {
		if d.wrong {
			g.fault(check, name, f.At, "the %s differs from that of the record in %s at byte %d", d.what,
				g.v.files.path(c.File), c.Offset)
		}
	}
}

// reference looks for the record that a revisit or the index of digests refers to.
func (g *group) reference(f *fact) {
	for i := range g.captures {
		c := &g.captures[i]
		same := f.Sum == c.Sum
		if f.has(flagDigests) {
			same = c.Digest == digest{} || f.Digest == c.Digest
		}
		if c.ID == f.ID && c.Time == f.Time && !c.has(flagRevisit) && same {
			return
		}
	}
	switch {
	case slices.ContainsFunc(g.v.files.all, func(f warcFile) bool { return !f.present }):
	case f.has(flagDigests):
		g.fault(checkDigests, "state/digests", -1, "the index refers to a record with the digest %s that is in no WARC file",
			f.Digest)
	default:
		g.fault(checkWARC, g.v.files.path(f.File), f.At, "a revisit record refers to a record of this URL that is in no "+
			"WARC file")
	}
}
