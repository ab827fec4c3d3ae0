// Package chromium renders pages in Chromium, controlled by its DevTools protocol.
//
// The browser has no network: each request that a page makes is paused and answered by a [render.Answerer], so that
// robots.txt, delays, limits, private addresses and records stay the crawl's. All network access of the browser itself
// leads to a proxy that does not exist. So what cannot be paused fails: WebSockets, shared and service workers, and
// other windows. [render.Result] counts these.
//
// Pausing covers a page's document, resources, frames and dedicated workers, as long as they share the page's process.
// So the browser runs without site isolation: a page can read other sites' responses if it exploits the renderer. It
// has no cookies or storage of other pages, since each page has a browser context of its own.
package chromium

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"kumo/internal/content/render"
)

// Render renders a page. The error is that of the browser: an answer with an error status is rendered like any other,
// and a document that cannot be fetched is reported as [render.ErrDocument].
func (b *Browser) Render(ctx context.Context, job render.Job) (*render.Result, error) {
	began := time.Now()
	most := b.cfg.Timeout + closeTime // the page's own limits are shorter
	if len(job.Shots) > 0 {
		most += shotTime
	}
	limit, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tab, closeTab := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	defer b.close(tab, closeTab)
	stop := context.AfterFunc(limit, closeTab)
	defer stop()

	g := newGate(limit, tab, &b.cfg, job.Answer)
	defer g.close()
	if err := g.open(); err != nil {
		return nil, b.explain(ctx, err)
	}
	if err := g.navigate(job.URL); err != nil {
		if g.hasCrashed() {
			err = render.ErrCrashed
		}
		return nil, b.explain(ctx, err)
	}
	complete, err := g.await(began, job.Wait)
	if err != nil {
		return nil, b.explain(ctx, err)
	}
	r := &render.Result{}
	g.act(began, &job, r)
	if job.VirtualTime > 0 && complete {
		if complete, err = g.advance(began, job.VirtualTime); err != nil {
			return nil, b.explain(ctx, err)
		}
	}
	r.Complete = complete
	if err := g.read(r); err != nil {
		if g.hasCrashed() {
			err = render.ErrCrashed
		}
		return nil, b.explain(ctx, err)
	}
	g.shoot(r, job.Shots)
	g.close()
	g.count(r)
	r.Took = time.Since(began)
	return r, nil
}

// explain returns the cause of an error of the browser.
func (b *Browser) explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, render.ErrDocument), errors.Is(err, render.ErrCrashed):
		return err
	case b.lost():
		return render.ErrCrashed
	}
	return fmt.Errorf("render: %w", err)
}

// close closes a tab. A browser that does not close it in time is replaced.
func (b *Browser) close(tab context.Context, cancel context.CancelFunc) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = chromedp.Cancel(tab) // whatever the error: the browser is replaced if it is not usable
	}()
	select {
	case <-done:
	case <-time.After(closeTime):
		b.stuck.Store(true)
		b.kill()
	}
	cancel()
}

// call runs a command that belongs to a page, within the page's limit.
func call[P, R any](g *gate, cmd cdp.Command[P, R], params P) (R, error) {
	ctx, cancel := g.commandContext()
	defer cancel()
	return chromedp.Call(ctx, cmd, params)
}

// open prepares the tab: all requests are paused, and what a user would have to answer is answered.
func (g *gate) open() error {
	ctx, cancel := g.commandContext()
	defer cancel()
	if err := chromedp.Listen(g.tab, g.event); err != nil { // opens the tab
		return err
	}
	if _, err := chromedp.Call(ctx, fetch.Enable, fetch.EnableParams{HandleAuthRequests: new(true)}); err != nil {
		return err
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		return err
	}
	if _, err := chromedp.Call(ctx, network.SetBypassServiceWorker,
		network.SetBypassServiceWorkerParams{Bypass: true}); err != nil {
		return err
	}
	_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(g.cfg.Width), Height: int64(g.cfg.Height), DeviceScaleFactor: 1})
	return err
}

func (g *gate) navigate(url string) error {
	ctx, cancel := context.WithTimeout(g.tab, g.cfg.Timeout)
	defer cancel()
	res, err := chromedp.Call(ctx, page.Navigate, page.NavigateParams{URL: url})
	switch {
	case g.documentErr() != nil:
		return fmt.Errorf("%w: %w", render.ErrDocument, g.documentErr())
	case err != nil && ctx.Err() != nil && g.tab.Err() == nil:
		return fmt.Errorf("%w within %v", render.ErrDocument, g.cfg.Timeout)
	case err != nil:
		return err
	case res.ErrorText == "net::ERR_HTTP_RESPONSE_CODE_FAILURE":
		return fmt.Errorf("%w: the answer has an error status, and no body", render.ErrDocument)
	case res.ErrorText != "" && res.ErrorText != "net::ERR_ABORTED": // a script went on to another page
		return fmt.Errorf("%w: %s", render.ErrDocument, res.ErrorText)
	}
	return nil
}

// serialize returns the document with the content of open shadow roots. Its argument is the maximum length.
const serialize = `(most => {
	const roots = [], find = from => {
		for (const e of from.querySelectorAll('*')) if (e.shadowRoot) { roots.push(e.shadowRoot); find(e.shadowRoot); }
	};
	find(document);
	const type = document.doctype ? new XMLSerializer().serializeToString(document.doctype) + '\n' : '';
	const html = document.documentElement;
	let attributes = '';
	for (const a of html.attributes) attributes += ' ' + a.name + '="' + a.value.replace(/&/g, '&amp;').replace(/"/g, '&quot;') + '"';
	const text = type + '<html' + attributes + '>' + html.getHTML({shadowRoots: roots}) + '</html>\n';
	return {url: location.href, title: document.title, html: text.slice(0, most), cut: text.length > most};
})(%d)`

func (g *gate) read(r *render.Result) error {
	ctx, cancel := g.commandContext()
	defer cancel()
	type document struct {
		URL   string `json:"url"`
		Title string `json:"title"`
		HTML  string `json:"html"`
		Cut   bool   `json:"cut"`
	}
	d, err := chromedp.Run(ctx, chromedp.Evaluate[document](fmt.Sprintf(serialize, g.cfg.MaxHTML)))
	if err != nil {
		return err
	}
	r.URL, r.Title, r.HTML, r.Cut = d.URL, d.Title, []byte(d.HTML), d.Cut
	return nil
}
