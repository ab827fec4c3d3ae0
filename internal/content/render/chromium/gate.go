package chromium

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"kumo/internal/content/render"
)

// A gate answers the requests and questions of one page, and knows when it is quiet.
type gate struct {
	cfg    *Config
	ctx    context.Context // for the answers
	cancel context.CancelFunc
	tab    context.Context    // of the page's commands
	abort  context.CancelFunc // ends them: a page that has crashed does not answer
	answer render.Answerer

	answering sync.WaitGroup
	advanced  chan struct{} // has an element when the virtual time is over
	changed   chan struct{} // has an element after a change of the fields below

	mu          sync.Mutex // guards the fields below
	closed      bool
	top         cdp.FrameID // the page's own frame; "" before its first request
	failure     error       // why the document could not be fetched
	hasDocument bool        // the document was answered, not only redirected
	crashed     bool
	underWay    int
	last        time.Time // of the last begin or end of a request
	loaded      time.Time // zero before the page has loaded
	onlyLoad    bool      // a page that has loaded is quiet
	counts      render.Result
}

func newGate(ctx, tab context.Context, cfg *Config, answer render.Answerer) *gate {
	g := &gate{cfg: cfg, answer: answer, changed: make(chan struct{}, 1),
		advanced: make(chan struct{}, 1), last: time.Now()}
	g.ctx, g.cancel = context.WithCancel(ctx)
	g.tab, g.abort = context.WithCancel(tab)
	return g
}

// close ends the answers. Later requests fail.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	g.answering.Wait()
}

const commandTime = 10 * time.Second // limit of a command that a page's script can delay

func (g *gate) commandContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(g.tab, commandTime)
}

func (g *gate) documentErr() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failure
}

func (g *gate) hasCrashed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.crashed
}

func (g *gate) notify() {
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// event handles an event of the page. It must neither wait nor call a command.
func (g *gate) event(event any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return // the page closes, with all its requests
	}
	switch e := event.(type) {
	case *fetch.EventRequestPaused:
		g.underWay++
		g.last = time.Now()
		allowed := g.admit(e)
		g.answering.Go(func() { g.handle(e, allowed) })
	case *fetch.EventAuthRequired:
		g.answering.Go(func() {
			_, _ = call(g, fetch.ContinueWithAuth, fetch.ContinueWithAuthParams{RequestID: e.RequestID,
				AuthChallengeResponse: &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseCancelAuth}})
		})
	case *page.EventJavascriptDialogOpening:
		g.counts.Dialogs++
		accept := e.Type == page.DialogTypeBeforeunload // which keeps the page from closing
		g.answering.Go(func() {
			_, _ = call(g, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: accept})
		})
	case *page.EventLoadEventFired:
		g.loaded = time.Now()
	case *emulation.EventVirtualTimeBudgetExpired:
		select {
		case g.advanced <- struct{}{}:
		default:
		}
	case *network.EventWebSocketCreated:
		g.counts.WebSockets++
	case *page.EventWindowOpen:
		g.counts.Windows++
	case *target.EventAttachedToTarget:
		if strings.HasSuffix(e.TargetInfo.Type, "worker") {
			g.counts.Workers++
		}
	case *inspector.EventTargetCrashed:
		g.crashed = true
		g.abort()
	default:
		return
	}
	g.notify()
}

// admit reports whether a request may be answered. The caller holds mu.
func (g *gate) admit(e *fetch.EventRequestPaused) bool {
	if g.top == "" && e.ResourceType == network.ResourceTypeDocument {
		g.top = e.FrameID
	}
	reads := e.Request.Method == http.MethodGet || e.Request.Method == http.MethodHead
	scheme, _, _ := strings.Cut(e.Request.URL, ":")
	web := scheme == "http" || scheme == "https"
	if !reads || !web || g.counts.Requests+g.counts.Failed+g.underWay > g.cfg.MaxRequests {
		g.counts.Blocked++
		return false
	}
	return true
}

// handle answers a paused request. Each one must be answered, else the page waits for ever.
func (g *gate) handle(e *fetch.EventRequestPaused, allowed bool) {
	document := e.ResourceType == network.ResourceTypeDocument && e.FrameID == g.topFrame()
	var resp *render.Response
	err := render.ErrBlocked
	if allowed {
		resp, err = g.answer(g.ctx, &render.Request{URL: e.Request.URL, Method: e.Request.Method,
			Header: header(e.Request.Headers), Document: document, Type: string(e.ResourceType)})
	}
	first := document && g.isFirstDocument(resp, err) // before the browser reports it
	if err == nil {
		_, sent := call(g, fetch.FulfillRequest, fetch.FulfillRequestParams{RequestID: e.RequestID,
			ResponseCode: int64(resp.Status), ResponseHeaders: headerEntries(resp.Header),
			Body: append([]byte{}, resp.Body...)}) // not nil: see the protocol
		if sent != nil { // the page has canceled it, or the header is invalid
			_, _ = call(g, fetch.FailRequest, fetch.FailRequestParams{RequestID: e.RequestID,
				ErrorReason: network.ErrorReasonFailed})
		}
	} else {
		reason := network.ErrorReasonConnectionFailed
		switch {
		case document && !first:
			reason = network.ErrorReasonAborted // others replace the page by the browser's error page
		case errors.Is(err, render.ErrBlocked):
			reason = network.ErrorReasonBlockedByClient
		}
		_, _ = call(g, fetch.FailRequest, fetch.FailRequestParams{RequestID: e.RequestID, ErrorReason: reason})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err == nil:
		g.counts.Requests++
		g.counts.Bytes += len(resp.Body)
	case errors.Is(err, render.ErrBlocked) && allowed:
		g.counts.Blocked++
	case allowed:
		g.counts.Failed++
	}
	g.underWay--
	g.last = time.Now()
	g.notify()
}

// isFirstDocument reports whether only redirects were answered before, and records the error of the page's own
// document.
func (g *gate) isFirstDocument(resp *render.Response, err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := !g.hasDocument
	if first {
		g.failure, g.hasDocument = err, err == nil && resp.Status/100 != 3
	}
	return first
}

func (g *gate) topFrame() cdp.FrameID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.top
}

// ownFields are header fields of the browser. The fetcher of the [render.Answerer] sets its own.
var ownFields = []string{"User-Agent", "Accept-Encoding", "Cookie", "Host", "Connection", "Upgrade-Insecure-Requests"}

func header(fields network.Headers) http.Header {
	h := http.Header{}
	for name, value := range fields {
		name = http.CanonicalHeaderKey(name)
		if text, ok := value.(string); ok && !slices.Contains(ownFields, name) && !strings.HasPrefix(name, "Sec-") {
			h.Set(name, text)
		}
	}
	return h
}

// bodyFields describe a body as it was sent; the browser gets it decoded.
var bodyFields = []string{"Content-Encoding", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive"}

func headerEntries(h http.Header) (all []*fetch.HeaderEntry) {
	for name, values := range h {
		if slices.Contains(bodyFields, http.CanonicalHeaderKey(name)) {
			continue
		}
		for _, v := range values {
			all = append(all, &fetch.HeaderEntry{Name: name, Value: v})
		}
	}
	return all
}

// await waits until the page is complete or its time is over, and reports which.
func (g *gate) await(began time.Time, wait render.Wait) (complete bool, err error) {
	if s := wait.Selector(); s != "" {
		return g.awaitMatch(began, s)
	}
	if wait == render.WaitLoad {
		g.mu.Lock()
		g.onlyLoad = true
		g.mu.Unlock()
	}
	return g.awaitQuiet(began), nil
}

const pollTime = 100 * time.Millisecond

// awaitMatch waits until an element matches a selector.
func (g *gate) awaitMatch(began time.Time, selector string) (bool, error) {
	ctx, cancel := context.WithDeadline(g.tab, began.Add(g.cfg.Timeout))
	defer cancel()
	text, err := json.Marshal(selector)
	if err != nil {
		return false, err
	}
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	for {
		found, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("document.querySelector("+string(text)+") !== null"))
		if thrown, ok := errors.AsType[*chromedp.ExceptionError](err); ok {
			return false, fmt.Errorf("wait for %q: the browser does not know this selector: %w", selector, thrown)
		}
		if found || g.hasCrashed() { // other errors: the page goes on to another one
			return found, nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return false, nil
		}
	}
}

// advance lets the page's timers run for some virtual time, which stands still while the page awaits answers. It reports
// whether they did: the time of the page may be over before.
func (g *gate) advance(began time.Time, by time.Duration) (bool, error) {
	if _, err := call(g, emulation.SetVirtualTimePolicy, emulation.SetVirtualTimePolicyParams{
		Policy: emulation.VirtualTimePolicyPauseIfNetworkFetchesPending, Budget: new(float64(by.Milliseconds()))}); err != nil {
		return false, err
	}
	over := time.NewTimer(time.Until(began.Add(g.cfg.Timeout)))
	defer over.Stop()
	select {
	case <-g.advanced:
		return true, nil
	case <-over.C:
	case <-g.tab.Done():
	}
	return false, nil
}

// awaitQuiet waits until the page has loaded and is quiet, or its time is over. It reports whether it is quiet.
func (g *gate) awaitQuiet(began time.Time) (quiet bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait, quiet := g.wait(time.Now(), began)
		if wait <= 0 {
			return quiet
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-g.changed:
		case <-g.tab.Done():
			return false
		}
	}
}

// wait returns how long to wait at least before the page may be complete; 0 if it is, or its time is over.
func (g *gate) wait(now, began time.Time) (wait time.Duration, quiet bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := began.Add(g.cfg.Timeout).Sub(now)
	if g.crashed || left <= 0 {
		return 0, false
	}
	if g.loaded.IsZero() {
		return left, false
	}
	if g.onlyLoad {
		return 0, true
	}
	left = min(left, g.loaded.Add(g.cfg.Settle).Sub(now))
	if g.underWay > 0 {
		return max(left, 0), false
	}
	since := g.last
	if g.loaded.After(since) {
		since = g.loaded
	}
	rest := since.Add(g.cfg.Quiet).Sub(now)
	if rest <= 0 {
		return 0, true
	}
	return max(min(left, rest), 0), false
}

// count adds the gate's counts to a result.
func (g *gate) count(r *render.Result) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := &g.counts
	r.Requests, r.Blocked, r.Failed, r.Bytes = c.Requests, c.Blocked, c.Failed, c.Bytes
	r.WebSockets, r.Workers, r.Windows, r.Dialogs = c.WebSockets, c.Workers, c.Windows, c.Dialogs
}
