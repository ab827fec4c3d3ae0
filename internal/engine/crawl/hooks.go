package crawl

import (
	"errors"
	"slices"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/state/frontier"
	"kumo/internal/state/rank"
)

// Hooks let the caller of the engine change its decisions, where a [Listener] only receives events. Workers call them
// concurrently. Arguments are valid only until the call returns. A nil function is not called.
type Hooks struct {
	// Request is called before each request for a URL, except for robots.txt. It may change req.Header. If veto is not
	// "", the URL is filtered with this reason. An error ends the crawl.
	Request func(it *item.Item, req *fetch.Request) (veto string, err error)
	// Links returns further URLs to be treated as links of a parsed page. They may be relative.
	Links func(rec *page.Record) []string
	// Link is called with links of a page before they are judged, many at once. edits has one entry for each link, with
	// the link's URL; Link changes the entries of links that it wants to change. An error ends the crawl.
	Link func(from *item.Item, links []page.Link, edits []LinkEdit) error
	// Record is called with an answered page before its links are admitted. If veto is not "", the URL is filtered with
	// this reason and nothing of the page is stored, but its links are still admitted. It may add to rec.Fields. An
	// error ends the crawl.
	Record func(rec *page.Record) (veto string, err error)
}

// A LinkEdit is a hook's change of a link. URLs may be relative to the page's.
type LinkEdit struct {
	URL  string    // replaces the link's URL; unchanged by default
	Veto string    // why the link is not followed; "" if it is
	More []string  // URLs to follow in addition
	Lift rank.Lift // raises the URL's rank within its host
}

// ruleVetoed is the rule in skipped.jsonl of URLs that a hook has filtered.
const ruleVetoed = "vetoed"

// runRequestHook runs the request hook. If it returns false, the visit is over.
func (w *worker) runRequestHook(v *frontier.Visit, req *fetch.Request) (bool, error) {
	if w.visits.hooks.Request == nil {
		return true, nil
	}
	shown := *req // a copy, so that requests are heap-allocated only with a hook
	veto, err := w.visits.hooks.Request(&v.Item, &shown)
	*req = shown
	if err != nil || veto == "" {
		return err == nil, err
	}
	w.returnQuota(v)
	return false, w.skip(v, ruleVetoed, veto)
}

// findLinks adds the links that a hook returns for a page.
func (p *pageReader) findLinks(rec *page.Record) {
	if p.hooks.Links == nil {
		return
	}
	for _, ref := range p.hooks.Links(rec) {
		if u, err := resolve(rec.URL, ref); err == nil {
			rec.Page.Links = append(rec.Page.Links, page.Link{URL: u.String(), Kind: page.Anchor})
		}
	}
}

// dropPage ends a visit whose page a hook has vetoed. The page's links are in the batch.
func (w *worker) dropPage(v *frontier.Visit, why string, f visitOutcome) error {
	w.endWithoutRecord(v)
	w.addSkip(entryFor(ruleVetoed), w.skipOf(v, ruleVetoed, why), v.Reported)
	if err := w.visits.abandons.commitBatch(&w.batch, nil); err != nil {
		return err
	}
	w.answer.releaseTurn()
	return w.done(v, f)
}

// addEdited adds links to the batch after a hook has edited them.
func (a *admission) addEdited(b *batch, it *item.Item, links []page.Link, asks policy.LinkRules) error {
	b.edits = slices.Grow(b.edits[:0], len(links))[:len(links)]
	for i := range links {
		b.edits[i] = LinkEdit{URL: links[i].URL}
	}
	if err := a.hooks.Link(it, links, b.edits); err != nil {
		return err
	}
	for i := range links {
		a.addEdit(b, it, &links[i], &b.edits[i], asks)
	}
	clear(b.edits)
	return nil
}

// addEdit adds a link to the batch with its edit.
func (a *admission) addEdit(b *batch, it *item.Item, l *page.Link, edit *LinkEdit, asks policy.LinkRules) {
	if edit.Veto == "" && edit.URL != l.URL {
		if u, err := resolve(it.URL, edit.URL); err != nil {
			edit.Veto = "changed to an invalid URL: " + err.Error()
		} else {
			changed := *l
			changed.URL = u.String()
			a.addLink(b, it, &changed, asks, edit)
		}
	}
	if edit.Veto != "" || edit.URL == l.URL {
		a.addLink(b, it, l, asks, edit)
	}
	for _, ref := range edit.More {
		if u, err := resolve(it.URL, ref); err == nil {
			more := *l
			more.URL = u.String()
			a.addLink(b, it, &more, asks, &LinkEdit{Lift: edit.Lift})
		}
	}
}

// resolve parses a URL that a hook has returned.
func resolve(from, ref string) (weburl.URL, error) {
	base, err := weburl.Parse(from)
	if err != nil {
		return base, err
	}
	u, err := base.Resolve(ref)
	if err == nil && !u.IsHTTP() {
		err = errors.New("not http or https")
	}
	return u.Canonical(), err
}
