package crawl

import (
	"cmp"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
)

// An earlierVisit is the data about a URL from before its recrawl.
type earlierVisit struct {
	seen.Meta
	conditional bool      // the request is conditional on it
	body        *page.Ref // the record with the body
}

// A revisit has a visit's data from earlier visits of the URL.
type revisit struct {
	before  earlierVisit
	cfg     *Config
	known   *known
	archive bool // records are archived
	answer  *answer
}

// makeConditional makes the request of a recrawl conditional if enough is known of the last answer. If records are
// archived, the body must be in the archive: otherwise an unchanged page would have no body there.
func (r *revisit) makeConditional(v *frontier.Visit, req *fetch.Request) error {
	if !v.Recrawl || r.known.db == nil {
		return nil
	}
	err := r.load(v)
	e := &r.before.Meta
	if err != nil || v.Refetch || e.Status != http.StatusOK || e.ETag == "" && e.Modified.IsZero() {
		return err // only a page with status 200 can be unchanged: the new record gets that status
	}
	ref, known, err := r.known.digests.Get(e.Digest)
	if err != nil || !known && r.archive {
		return err
	}
	if known {
		body := page.Ref(ref)
		r.before.body = &body
	}
	req.ETag, req.Modified, r.before.conditional = e.ETag, e.Modified, true
	return nil
}

// loadIfRecrawl is load for a recrawl.
func (r *revisit) loadIfRecrawl(v *frontier.Visit) error {
	if !v.Recrawl || r.known.db == nil {
		return nil
	}
	return r.load(v)
}

// load reads what is known of earlier visits.
func (r *revisit) load(v *frontier.Visit) error {
	e, _, err := r.known.db.Get(v.URL)
	r.before.Meta = e.Meta
	return err
}

// unmodified reports whether the server answered that the page has not changed.
func (r *revisit) unmodified() bool {
	return r.before.conditional && r.answer.resp.Status == http.StatusNotModified
}

// result returns the result of a recrawl.
func (r *revisit) result(rec *page.Record, v *frontier.Visit) page.Recrawl {
	// regardless of the content coding: servers that compress each answer anew put the time into it
	same := rec.Digest == r.before.Digest || rec.Content != 0 && rec.Content == r.before.Content
	switch {
	case !v.Recrawl:
		return page.First
	case rec.Failure != page.None:
		return page.Trouble
	case isGone(rec.Response.Status):
		return page.Gone
	case r.unmodified(), same && (rec.Response.Status < 400 || rec.Response.Status == r.before.Status):
		return page.Unchanged
	case rec.Response.Status >= 400:
		return page.Trouble
	}
	return page.Changed
}

// content returns a record's Content. It needs the whole body.
func (r *revisit) content(rec *page.Record) uint64 {
	res := rec.Response
	coded := res.Header.Get("Content-Encoding") != "" || r.before.Content != 0
	if !coded || len(res.Body) == 0 || res.FullBody != nil || res.Truncated != page.Whole || res.Malformed != "" {
		return 0
	}
	return max(xxhash.Sum64(res.Body), 1)
}

func isGone(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

const maxETag = 256 // bytes; a longer one is not stored

// fillMeta sets the fields of m from an answer. An error says nothing about the page that was there before.
func (r *revisit) fillMeta(m *seen.Meta, rec *page.Record) {
	m.Status = rec.Response.Status
	switch {
	case r.unmodified():
		m.Status = http.StatusOK
	case rec.Recrawl == page.Trouble, rec.Recrawl == page.Gone:
		return
	case rec.Recrawl == page.Changed:
		m.Changes = r.before.Changes + 1
	}
	m.Digest, m.Content, m.ETag = rec.Digest, rec.Content, rec.Response.Header.Get("ETag")
	if len(m.ETag) > maxETag {
		m.ETag = ""
	}
	if modified := page.LastModified(rec.Response.Header); !modified.IsZero() {
		m.Modified = modified
	}
	if r.unmodified() { // a 304 need not repeat them
		m.ETag = cmp.Or(m.ETag, r.before.ETag)
		if m.Modified.IsZero() {
			m.Modified = r.before.Modified
		}
	}
}

// plan returns the time of the URL's next visit; nothing in a crawl without recrawls.
func (r *revisit) plan(v *frontier.Visit, found page.Recrawl) seen.Meta {
	if r.known.db == nil || !r.cfg.Recrawl.Enabled() && !v.Recrawl {
		return seen.Meta{}
	}
	if found == page.First && isGone(r.answer.resp.Status) {
		found = page.Gone
	}
	now := r.cfg.Now()
	if r.before.Queued.After(now) {
		now = r.before.Queued // the clock was set back
	}
	next := r.cfg.Recrawl.IntervalFor(v.URL).Plan(visitsOf(&r.before.Meta), found, now)
	m := seen.Meta{Due: next.Due, Every: next.Every, Missing: next.Missing}
	if v.Kind != page.Seed && v.Kind != page.Anchor {
		m.Kind = uint8(v.Kind)
	}
	if v.From != r.before.From {
		m.From = v.From
	}
	return m
}

// visitsOf returns what the URL database has of a URL's visits.
func visitsOf(m *seen.Meta) policy.Visits {
	return policy.Visits{Last: m.Fetched, Due: m.Due, Every: m.Every, Missing: m.Missing}
}

// endWithoutRecord sets up the batch to end a visit that has no record.
func (w *worker) endWithoutRecord(v *frontier.Visit) {
	w.batch.item, w.batch.visitURL = &v.Item, v.URL
	if v.Recrawl {
		w.planWithoutRecord(&w.batch, v)
	}
}

// planWithoutRecord sets the next visit in a batch that ends a recrawl without a record.
func (w *worker) planWithoutRecord(b *batch, v *frontier.Visit) {
	if w.revisit.before.Queued.IsZero() && w.visits.cfg.Claims {
		_ = w.revisit.load(v) // on failure, the interval starts again
	}
	b.recrawlPlan = w.revisit.plan(v, page.Trouble)
	b.planned = w.revisit.plannedAfter(&v.Item, &b.recrawlPlan)
}
