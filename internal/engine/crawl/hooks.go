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

// Hooks are what who runs the engine has to say to what it does, where a [Listener] is only told. The workers call
// them, many at once; what they are given is theirs only until they return. A nil function is not called.
type Hooks struct {
	// Request is asked before each request for a URL, but not for robots.txt. It may change req.Header, and leaves the URL
	// out with a word why; "" lets it pass. An error ends the crawl.
	Request func(it *item.Item, req *fetch.Request) (veto string, err error)
	// Links names further URLs of a page that was read, which may be relative: they are its links like others.
	Links func(rec *page.Record) []string
	// Link is asked about links of a page, before they are judged, many at once. It sets of the edits, one for each link
	// and with its URL, those that are to change something. An error ends the crawl.
	Link func(from *item.Item, links []page.Link, edits []LinkEdit) error
	// Record is asked about a page that was answered, before its links are taken in. With a word why the URL is left out,
	// and nothing kept of the page, whose links are taken in all the same; "" keeps it. It may add to rec.Fields. An error
	// ends the crawl.
	Record func(rec *page.Record) (veto string, err error)
}

// A LinkEdit is what is to become of a link. URLs may be relative to the page's.
type LinkEdit struct {
	URL  string    // takes its place; its own leaves it as it is
	Veto string    // why it is not followed; "" if it is
	More []string  // are followed beside it
	Lift rank.Lift // by how much the URL goes before others of its host
}

// ruleVetoed is the rule in skipped.jsonl of what a hook has left out.
const ruleVetoed = "vetoed"

// runRequestHook asks whether a request is to be made. When it returns false, the visit is over.
func (w *worker) runRequestHook(v *frontier.Visit, req *fetch.Request) (bool, error) {
	if w.visits.hooks.Request == nil {
		return true, nil
	}
	shown := *req // so that requests lie on the heap only where there is a hook
	veto, err := w.visits.hooks.Request(&v.Item, &shown)
	*req = shown
	if err != nil || veto == "" {
		return err == nil, err
	}
	w.returnQuota(v)
	return false, w.skip(v, ruleVetoed, veto)
}

// findLinks adds to a page that was read the links that a hook names.
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

// dropPage ends a visit of whose page nothing is to be kept. Its links are in the batch.
func (w *worker) dropPage(v *frontier.Visit, why string, f visitOutcome) error {
	w.endWithoutRecord(v)
	w.addSkip(entryFor(ruleVetoed), w.skipOf(v, ruleVetoed, why), v.Reported)
	if err := w.visits.abandons.commitBatch(&w.batch, nil); err != nil {
		return err
	}
	w.answer.releaseTurn()
	return w.done(v, f)
}

// addEdited takes links in as a hook wants them.
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

// addEdit takes a link in with what a hook makes of it.
func (a *admission) addEdit(b *batch, it *item.Item, l *page.Link, edit *LinkEdit, asks policy.LinkRules) {
	if edit.Veto == "" && edit.URL != l.URL {
		if u, err := resolve(it.URL, edit.URL); err != nil {
			edit.Veto = "changed into what is no URL: " + err.Error()
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

// resolve reads a URL that a hook has named.
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
