package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/content/appshell"
	"kumo/internal/content/parse"
	"kumo/internal/content/policy"
	"kumo/internal/content/render"
)

// A Renderer runs the scripts of pages in a browser. Its methods are safe for concurrent use.
type Renderer interface {
	// Pages returns the number of pages that are rendered at once.
	Pages() int
	// Render waits until a page may be rendered, and renders it. Every request that the page makes, the first of them
	// for the page itself, is answered by job.Answer.
	Render(ctx context.Context, job render.Job) (*render.Result, error)
	// Close ends the browser. A later Render starts another one.
	Close() error
}

const (
	vainRenders    = 3 // renders in a row that gained nothing, after which a host's pages are not rendered
	renderQueue    = 4 // pages that wait for the browser, as a multiple of those that are rendered at once
	crowdedWait    = 2 * time.Second
	maxRenderHosts = 1 << 15
	minTextGain    = 200 // bytes of text; less may be a clock or a banner
	minShellGain   = 40  // the same for a page that had hardly any
)

// renderings renders pages for the workers. In mode auto, it learns which hosts' pages gain links or text by that.
type renderings struct {
	renderer  Renderer
	mode      policy.RenderMode
	wait      render.Wait
	virtual   time.Duration
	actions   []render.Action
	script    string
	shots     []page.ShotKind
	overrides *policy.Overrides
	resources *resources
	listener  Listener
	active    atomic.Int32 // pages that are rendered, or wait for the browser

	mu     sync.Mutex // guards the fields below
	hosts  *bounded.Recent[string, renderGain]
	counts stats.Rendering
}

// A renderGain is what is known of the pages of a host.
type renderGain struct {
	gained                 bool // a page gained links or text
	vainShells, vainOthers int  // renders in a row without gain, of pages that show nothing without script and others
}

// Kinds of pages of a host whose rendering may end.
const (
	ShellPages = "its pages that need script"
	OtherPages = "its pages that show text without script"
)

// ended returns the kinds of pages that are no longer rendered in mode auto.
func (g renderGain) ended() (kinds []string) {
	if g.vainShells >= vainRenders {
		kinds = append(kinds, ShellPages)
	}
	if g.gained && g.vainOthers >= vainRenders {
		kinds = append(kinds, OtherPages)
	}
	return kinds
}

func newRenderings(r Renderer, cfg *Config, res *resources, l Listener) *renderings {
	if r == nil {
		return nil
	}
	shots := slices.Clone(cfg.Shots)
	if cfg.PrintPDF {
		shots = append(shots, page.ShotPDF)
	}
	return &renderings{renderer: r, mode: cfg.Render, wait: cfg.RenderWait, virtual: cfg.RenderVirtualTime,
		actions: cfg.RenderActions, script: cfg.RenderScript,
		shots: shots, overrides: cfg.Overrides, resources: res, listener: l,
		hosts: bounded.NewRecent[string, renderGain](maxRenderHosts)}
}

func (r *renderings) modeOf(host string) policy.RenderMode {
	if own := r.overrides.ForHost(host).Render; own != nil {
		return *own
	}
	return r.mode
}

func (r *renderings) waitOf(host string) render.Wait {
	if own := r.overrides.ForHost(host).RenderWait; own != nil {
		return *own
	}
	return r.wait
}

func (r *renderings) gainOf(host string) renderGain {
	r.mu.Lock()
	defer r.mu.Unlock()
	g, _ := r.hosts.Get(host)
	return g
}

// expects reports whether the next page of a host is rendered, whatever its answer.
func (r *renderings) expects(host string) bool {
	switch r.modeOf(host) {
	case policy.RenderAlways:
		return true
	case policy.RenderAuto:
		g := r.gainOf(host)
		return g.gained && g.vainOthers < vainRenders
	}
	return false
}

// crowded reports whether a visit would only wait for the browser, so that its worker has better things to do.
func (r *renderings) crowded(host string) bool {
	return int(r.active.Load()) >= renderQueue*r.renderer.Pages() && r.expects(host)
}

// wants reports whether an answered page is to be rendered.
func (r *renderings) wants(host string, resp *page.Response, pg *page.Page) bool {
	if resp.Status != http.StatusOK || !parse.IsHTML(pg.Sniffed) || len(resp.Body) == 0 || resp.FullBody != nil ||
		resp.Truncated != page.Whole {
		return false
	}
	switch r.modeOf(host) {
	case policy.RenderAlways:
		return true
	case policy.RenderAuto:
		g := r.gainOf(host)
		if pg.NeedsScript != page.NoScriptNeeded {
			return g.vainShells < vainRenders
		}
		return g.gained && g.vainOthers < vainRenders
	}
	return false
}

// A received is a page before its scripts.
type received struct {
	host  string
	need  page.ScriptNeed
	links map[string]bool
	text  int
}

func newReceived(host string, resp *page.Response, pg *page.Page) *received {
	b := &received{host: host, need: pg.NeedsScript, links: make(map[string]bool, len(pg.Links)),
		text: appshell.TextLen(resp.Body)}
	for i := range pg.Links {
		if l := &pg.Links[i]; !l.Kind.Embed() {
			b.links[strings.Clone(l.URL)] = true
		}
	}
	return b
}

// gained reports whether the rendered page has links or text that the received one lacks.
func (b *received) gained(html []byte, pg *page.Page) bool {
	for i := range pg.Links {
		if l := &pg.Links[i]; !l.Kind.Embed() && !b.links[l.URL] {
			return true
		}
	}
	if b.need != page.NoScriptNeeded {
		return appshell.TextLen(html) > 2*b.text+minShellGain
	}
	return appshell.TextLen(html) >= b.text+minTextGain
}

// learn records whether a rendered page gained.
func (r *renderings) learn(b *received, gained bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if gained {
		r.counts.Gained++
	}
	g, _ := r.hosts.Get(b.host)
	vain := &g.vainOthers
	shell := b.need != page.NoScriptNeeded
	if shell {
		vain = &g.vainShells
	}
	if *vain++; gained {
		g.gained, *vain = true, 0
	}
	r.hosts.Put(b.host, g)
	if *vain == vainRenders && r.modeOf(b.host) == policy.RenderAuto {
		kind := OtherPages
		if shell {
			kind = ShellPages
		}
		r.listener.RenderingStopped(b.host, fmt.Sprintf("%d in a row gained neither links nor text: %s", vainRenders, kind))
	}
}

// render renders an answered page. The result is nil if the browser fails: then the page is used as it was received. An
// error means that the crawl stops.
func (r *renderings) render(ctx context.Context, it *item.Item, u weburl.URL, doc *render.Response) (*render.Result,
	string, error) {
	r.active.Add(1)
	defer r.active.Add(-1)
	p := &renderedPage{resources: r.resources, item: it, url: u, document: doc}
	result, err := r.renderer.Render(ctx, render.Job{URL: it.URL, Answer: p.answer, Wait: r.waitOf(u.Host()),
		VirtualTime: r.virtual, Actions: r.actions, Script: r.script, Shots: r.shots})
	if ctx.Err() != nil {
		return nil, "", errNoSlot
	}
	if err == nil && result.Cut {
		result, err = nil, errors.New("the document is too long after its scripts")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.counts.Failed++
		r.listener.RenderFailed(it.URL, err)
		return nil, "", nil
	}
	r.counts.Pages++
	r.counts.Seconds += result.Took.Seconds()
	r.counts.Blocked += int64(result.Blocked)
	if result.ActionErr != nil {
		r.counts.ActionsFailed++
		r.listener.ActionFailed(it.URL, result.ActionErr)
	}
	r.counts.Shots += int64(len(result.Shots))
	r.counts.ShotsFailed += int64(len(result.ShotErrors))
	for _, err := range result.ShotErrors {
		r.listener.ShotFailed(it.URL, err)
	}
	return result, p.target(), nil
}

// addLinks adds links that a page had while it was rendered, and its document no longer has.
func (p *pageReader) addLinks(urls []string) {
	if len(urls) == 0 {
		return
	}
	known := make(map[string]bool, len(p.answer.page.Links))
	for i := range p.answer.page.Links {
		known[p.answer.page.Links[i].URL] = true
	}
	for _, text := range urls {
		u, err := weburl.Parse(text)
		if err != nil || !u.IsHTTP() {
			continue
		}
		if url := u.Canonical().String(); !known[url] {
			known[url] = true
			p.answer.page.Links = append(p.answer.page.Links, page.Link{URL: url, Kind: page.Anchor})
		}
	}
}

// Rendering returns what this run has rendered.
func (e *Engine) Rendering() (c stats.Rendering) {
	r := e.runner.visits.renderings
	if r == nil {
		return c
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c = r.counts
	c.Requests, c.Cached = r.resources.requests.Load(), r.resources.hits.Load()
	return c
}

// readRendered renders a page that was read, if that is wanted, and reads it again. It returns the response that was
// read. While the page is rendered, the worker has no slot.
func (p *pageReader) readRendered(ctx context.Context, rec *page.Record, it *item.Item, u weburl.URL) (*page.Response,
	error) {
	resp := rec.Response
	if it.Kind == page.Sitemap || it.Kind.Embed() || !p.renderings.wants(u.Host(), resp, &p.answer.page) {
		return resp, nil
	}
	before := newReceived(u.Host(), resp, &p.answer.page)
	body := bytes.Clone(resp.Body)
	p.answer.returnSlot()
	p.answer.releaseTurn()
	result, target, err := p.renderings.render(ctx, it, u, &render.Response{Status: resp.Status, Header: resp.Header,
		Body: body})
	if err != nil {
		return nil, err
	}
	if result == nil {
		return resp, p.readAnswer(ctx, resp, it)
	}
	shown := resp.Rendered(result.HTML)
	if err := p.readAnswer(ctx, shown, it); err != nil {
		return nil, err
	}
	resp.Body = body
	p.answer.page.NeedsScript = before.need
	resp.Malformed = shown.Malformed
	if target != "" {
		p.answer.page.Links = append(p.answer.page.Links, page.Link{URL: target, Kind: page.Refresh})
	}
	p.addLinks(result.Links)
	p.renderings.learn(before, before.gained(result.HTML, &p.answer.page) || target != "" && !before.links[target])
	rec.Rendering = &page.Rendering{HTML: result.HTML, Requests: result.Requests - 1, Blocked: result.Blocked,
		Failed: result.Failed, Complete: result.Complete, Took: result.Took, Shots: result.Shots}
	return shown, nil
}
