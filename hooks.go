package kumo

import (
	"cmp"
	"fmt"
	"net/http"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
	"kumo/internal/engine/crawl"
)

// A Request is about to be sent.
type Request struct {
	URL   string
	From  string // the page that linked to it; "" for a seed
	Depth int    // number of links from a seed

	// The header fields of the request, which the callback may change. Cookies set by servers, and fields that follow
	// from the URL and the connection, are not included. A field that cannot be sent (Host, Content-Length, a control
	// character in a value) ends Run with an error that names it. Fields set here are sent to this host, whichever it
	// is.
	Header http.Header

	veto string
}

// Veto excludes the URL. skipped.jsonl records the reason, and Stats counts it.
func (r *Request) Veto(reason string) { r.veto = cmp.Or(reason, "by OnRequest") }

// A Link is a link of a page, before the crawl's rules are applied.
type Link struct {
	From    string // page that contains it
	URL     string // absolute and canonical; may be changed, also to a URL relative to From
	Element string // kind of link: a, img, script, style, frame, link, redirect, sitemap, ...
	Text    string // text of an anchor, white space collapsed, at most 256 bytes
	Rel     string // rel attribute as written

	veto string
	more []string
}

// Veto drops the link. If no other link leads to its URL, the URL is excluded with that reason.
func (l *Link) Veto(reason string) { l.veto = cmp.Or(reason, "by OnLink") }

// Add adds a link from the same element to another URL, which may be relative to From.
func (l *Link) Add(url string) { l.more = append(l.more, url) }

// hooks returns the engine's hooks for the callbacks that are set.
func (c *Crawler) hooks() (h crawl.Hooks) {
	if len(c.onRequest) > 0 {
		h.Request = c.callRequestHook
	}
	if len(c.onLink) > 0 {
		h.Link, c.job.AnchorText = c.callLinkHooks, true
	}
	if len(c.findLinks) > 0 {
		h.Links = c.callLinksHook
	}
	return h
}

func (c *Crawler) callRequestHook(it *item.Item, req *fetch.Request) (veto string, err error) {
	r := &Request{URL: it.URL, From: it.From, Depth: int(it.Depth), Header: req.Header}
	for _, f := range c.onRequest {
		if f(r); r.veto != "" {
			c.vetoes.Add(1)
			return r.veto, nil
		}
	}
	if err := fetch.CheckFields(r.Header); err != nil {
		return "", fmt.Errorf("OnRequest: %w", err)
	}
	req.Header = r.Header
	return "", nil
}

func (c *Crawler) callLinkHooks(from *item.Item, links []page.Link, edits []crawl.LinkEdit) error {
	for i := range links {
		edits[i] = c.callLinkHook(from, &links[i])
	}
	return nil
}

func (c *Crawler) callLinkHook(from *item.Item, link *page.Link) (e crawl.LinkEdit) {
	l := Link{From: from.URL, URL: link.URL, Element: link.Kind.String(), Text: link.Text, Rel: link.Rel}
	for _, f := range c.onLink {
		if f(&l); l.veto != "" {
			c.vetoes.Add(1)
			return crawl.LinkEdit{Veto: l.veto, More: l.more}
		}
	}
	return crawl.LinkEdit{URL: l.URL, More: l.more}
}

func (c *Crawler) callLinksHook(rec *page.Record) (all []string) {
	p := pageOf(rec)
	for _, f := range c.findLinks {
		all = append(all, f(p)...)
	}
	return all
}
