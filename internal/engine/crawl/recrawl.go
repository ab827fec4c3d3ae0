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

// was is what was known of a URL before its recrawl.
type was struct {
	seen.Meta
	asked bool      // the server is asked whether that still holds
	body  *page.Ref // where the body lies
}

// recall makes a recrawl's request one for what has changed, if enough is known of the last answer. Where records are
// archived, the body must be: otherwise nobody could say later what had not changed.
func (w *worker) recall(v *frontier.Visit, req *fetch.Request) error {
	if !v.Recrawl || w.known.db == nil {
		return nil
	}
	e, _, err := w.known.db.Get(v.URL)
	w.was.Meta = e.Meta
	if err != nil || v.Again || e.Status != http.StatusOK || e.ETag == "" && e.Modified.IsZero() {
		return err // of a page alone can be said that it is as it was: what stands for it later has its status
	}
	ref, known, err := w.known.digests.Get(e.Digest)
	if err != nil || !known && w.files.archive {
		return err
	}
	if known {
		body := page.Ref(ref)
		w.was.body = &body
	}
	req.ETag, req.Modified, w.was.asked = e.ETag, e.Modified, true
	return nil
}

// unmodified reports whether the server says that the page is as it was.
func (w *worker) unmodified() bool { return w.was.asked && w.resp.Status == http.StatusNotModified }

// keep makes a record of an answer without a body: the earlier one still holds.
func (w *worker) keep(rec *page.Record) {
	rec.Digest, rec.Content, rec.Revisit = w.was.Digest, w.was.Content, w.was.body
}

// found is what a recrawl has found.
func (w *worker) found(rec *page.Record, v *frontier.Visit) page.Recrawl {
	switch {
	case !v.Recrawl:
		return page.First
	case rec.Failure != page.None:
		return page.Trouble
	case isGone(rec.Response.Status):
		return page.Gone
	case w.unmodified(), w.sameBody(rec) && (rec.Response.Status < 400 || rec.Response.Status == w.was.Status):
		return page.Unchanged
	case rec.Response.Status >= 400:
		return page.Trouble
	}
	return page.Changed
}

// sameBody reports whether a body is the one before, whatever its content coding: servers that compress anew for each
// answer write the time into it.
func (w *worker) sameBody(rec *page.Record) bool {
	return rec.Digest == w.was.Digest || rec.Content != 0 && rec.Content == w.was.Content
}

// content is a record's Content. It needs the body, and that this is whole.
func (w *worker) content(rec *page.Record) uint64 {
	res := rec.Response
	coded := res.Header.Get("Content-Encoding") != "" || w.was.Content != 0
	if !coded || len(res.Body) == 0 || res.Whole != nil || res.Truncated != page.Whole || res.Malformed != "" {
		return 0
	}
	return max(xxhash.Sum64(res.Body), 1)
}

func isGone(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

const maxETag = 256 // bytes; a longer one is not kept

// learn keeps what an answer says of itself. What an error says of the page that was there before is nothing.
func (w *worker) learn(m *seen.Meta, rec *page.Record) {
	m.Status = rec.Response.Status
	switch {
	case w.unmodified():
		m.Status = http.StatusOK
	case rec.Recrawl == page.Trouble, rec.Recrawl == page.Gone:
		return
	case rec.Recrawl == page.Changed:
		m.Changes = w.was.Changes + 1
	}
	m.Digest, m.Content, m.ETag = rec.Digest, rec.Content, rec.Response.Header.Get("ETag")
	if len(m.ETag) > maxETag {
		m.ETag = ""
	}
	if field := rec.Response.Header.Get("Last-Modified"); field != "" {
		if modified, err := http.ParseTime(field); err == nil && modified.Unix() > 0 {
			m.Modified = modified
		}
	}
	if w.unmodified() { // whose answer need not repeat them
		m.ETag = cmp.Or(m.ETag, w.was.ETag)
		if m.Modified.IsZero() {
			m.Modified = w.was.Modified
		}
	}
}

// plan says when the visit's URL is visited again; nothing in a crawl without recrawls.
func (w *worker) plan(v *frontier.Visit, found page.Recrawl) seen.Meta {
	if w.known.db == nil || !w.cfg.Recrawl.On() && !v.Recrawl {
		return seen.Meta{}
	}
	if found == page.First && isGone(w.resp.Status) {
		found = page.Gone
	}
	now := w.cfg.Now()
	if w.was.Queued.After(now) {
		now = w.was.Queued // the clock was set back
	}
	next := w.cfg.Recrawl.Of(v.URL).Plan(visitsOf(&w.was.Meta), found, now)
	m := seen.Meta{Due: next.Due, Every: next.Every, Missing: next.Missing}
	if v.Kind != page.Seed && v.Kind != page.Anchor {
		m.Kind = uint8(v.Kind)
	}
	if v.From != w.was.From {
		m.From = v.From
	}
	return m
}

// visitsOf is what the URL database has of a URL's visits.
func visitsOf(m *seen.Meta) policy.Visits {
	return policy.Visits{Last: m.Fetched, Due: m.Due, Every: m.Every, Missing: m.Missing}
}

// settleBy ends a visit that brings no record.
func (w *worker) settleBy(v *frontier.Visit) {
	w.batch.item, w.batch.settles = &v.Item, v.URL
	if v.Recrawl {
		w.batch.plan = w.plan(v, page.Trouble)
	}
}
