// Package render renders pages in Chromium or Chrome, for crawls of package kumo. A program that does not import it
// does not link its dependencies.
package render

import (
	"time"

	"kumo"
	"kumo/internal/content/render/chromium"
)

// Options configure a renderer. The zero value means the defaults.
type Options struct {
	Browser   string        // the program; default: the first of chromium, google-chrome in PATH
	NoSandbox bool          // start it without its sandbox, as root must: only for pages that are trusted
	UserAgent string        // for scripts; requests have the crawl's. Default: the browser's
	Pages     int           // rendered at once; default: by processors and memory, as a page takes up to 400 MB
	Timeout   time.Duration // after which a page is used as it is; default 30s
}

// New returns a renderer for [kumo.Render], which closes it. The browser starts with the first page that needs it. It
// is an error if there is none.
func New(o Options) (kumo.Renderer, error) {
	pages := o.Pages
	if pages <= 0 {
		pages = chromium.PagesAtOnce()
	}
	pool, err := chromium.NewPool(chromium.PoolConfig{Pages: pages, Browser: chromium.Config{Path: o.Browser,
		NoSandbox: o.NoSandbox, Agent: o.UserAgent, Timeout: o.Timeout, MaxRequests: chromium.MaxPageRequests}})
	if err != nil {
		return nil, err
	}
	return pool, nil
}
