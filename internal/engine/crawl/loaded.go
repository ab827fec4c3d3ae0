package crawl

import (
	"net/http"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"kumo/internal/base/bounded"
	"kumo/internal/base/page"
	"kumo/internal/content/parse"
	"kumo/internal/content/render"
)

const (
	maxLoaded     = 1 << 16 // resources, at least; a forgotten one is fetched once more
	maxReferrers  = 1 << 8  // resources with references
	maxReferences = 64      // of a resource; one with more is fetched as an embed
)

// loaded has the resources that rendered pages have loaded, so that a crawl with embeds does not fetch them again. A
// browser loads only some of the resources in a style sheet; the rest are fetched as embeds of the page.
type loaded struct {
	mu        sync.Mutex // guards the fields below
	plain     *bounded.Recent[uint64, struct{}]
	referrers *bounded.Recent[uint64, []page.Link]
}

func newLoaded() *loaded {
	return &loaded{plain: bounded.NewRecent[uint64, struct{}](maxLoaded),
		referrers: bounded.NewRecent[uint64, []page.Link](maxReferrers)}
}

// add adds an answered resource. A nil loaded does nothing.
func (l *loaded) add(url, method string, a *render.Response) {
	if l == nil || method != http.MethodGet {
		return
	}
	references, ok := referencesOf(url, a)
	if !ok {
		return
	}
	key := xxhash.Sum64String(url)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(references) == 0 {
		l.plain.Put(key, struct{}{})
		return
	}
	l.referrers.Put(key, references)
}

// referencesOf returns the references of a resource; false if a crawl must read it as an embed.
func referencesOf(url string, a *render.Response) (references []page.Link, ok bool) {
	kind := parse.MediaType(a.Header.Get("Content-Type"))
	switch {
	case a.Status/100 != 2 || !parse.Readable(kind):
		return nil, true
	case parse.IsHTML(kind):
		return nil, false
	}
	var pg page.Page
	err := parse.New(parse.Config{MaxLinks: maxReferences + 1}).Parse(&page.Response{URL: url, Status: a.Status,
		Header: a.Header, Payload: a.Body, Body: a.Body}, &pg)
	if err != nil || len(pg.Links) > maxReferences {
		return nil, false
	}
	for _, l := range pg.Links {
		l.URL, l.Rel, l.Lang, l.Text = strings.Clone(l.URL), "", "", ""
		references = append(references, l)
	}
	return references, true
}

// has reports whether a rendered page has loaded a resource, and returns its references. A nil loaded has none.
func (l *loaded) has(url string) (references []page.Link, has bool) {
	if l == nil {
		return nil, false
	}
	key := xxhash.Sum64String(url)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, has = l.plain.Get(key); has {
		return nil, true
	}
	return l.referrers.Get(key)
}
