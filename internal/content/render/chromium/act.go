package chromium

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"kumo/internal/content/render"
)

const (
	actTime    = 20 * time.Second       // limit of a page's actions, and of its script
	actSteps   = 200                    // scrolls and clicks of a page
	actPause   = 200 * time.Millisecond // after a step, if the page makes no request
	actMaxWait = 3 * time.Second        // after a step, if it makes requests
	actHeight  = 200_000                // pixels that are scrolled
	maxLinks   = 20_000
)

//go:embed act.js
var actScript string

// act runs the user's script and the actions on a page, and collects the links that appear meanwhile: virtual lists
// remove them again. The page's own time bounds it, too. Its errors cost no page.
func (g *gate) act(began time.Time, job *render.Job, r *render.Result) {
	if len(job.Actions) == 0 && job.Script == "" {
		return
	}
	ctx, cancel := context.WithDeadline(g.tab, began.Add(g.cfg.Timeout))
	defer cancel()
	if r.ActionErr = g.runScript(ctx, job.Script, r); r.ActionErr == nil {
		r.ActionErr = g.runActions(ctx, job.Actions, r)
	}
}

// runScript runs the user's script as the body of an async function. It may return a list of links.
func (g *gate) runScript(ctx context.Context, script string, r *render.Result) error {
	if script == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, actTime)
	defer cancel()
	links, err := chromedp.Run(ctx, chromedp.Evaluate[[]string]("(async () => {"+script+
		"\n})().then(all => Array.isArray(all) ? all.map(u => new URL(u, document.baseURI).href) : [])",
		func(p *runtime.EvaluateParams) { p.AwaitPromise = new(true) }))
	if err != nil {
		return fmt.Errorf("the script: %w", err)
	}
	addLinks(r, links)
	return g.pause(ctx)
}

func (g *gate) runActions(ctx context.Context, actions []render.Action, r *render.Result) error {
	if len(actions) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, actTime)
	defer cancel()
	world, err := chromedp.Call(ctx, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: g.topFrame(),
		WorldName: "kumo"})
	if err != nil {
		return fmt.Errorf("the actions: %w", err)
	}
	inWorld := func(p *runtime.EvaluateParams) { p.ContextID = world.ExecutionContextID }
	names, err := json.Marshal(actions)
	if err != nil {
		return err
	}
	type result struct {
		Links []string `json:"links"`
		Acted bool     `json:"acted"`
	}
	if _, err = chromedp.Run(ctx, chromedp.Evaluate[any](actScript+"; null", inWorld)); err != nil {
		return fmt.Errorf("the actions: %w", err)
	}
	for range actSteps {
		s, err := chromedp.Run(ctx, chromedp.Evaluate[result](fmt.Sprintf("step(%s, %d)", names, actHeight), inWorld))
		if err != nil {
			return fmt.Errorf("the actions: %w", err)
		}
		if addLinks(r, s.Links); !s.Acted {
			break
		}
		if err := g.pause(ctx); err != nil {
			return fmt.Errorf("the actions: %w", err)
		}
	}
	_, err = chromedp.Run(ctx, chromedp.Evaluate[any]("scrollTo(0, 0); null", inWorld)) // for pictures
	return err
}

// pause waits until the page makes no requests for a short time, or has made some for long.
func (g *gate) pause(ctx context.Context) error {
	most := time.NewTimer(actMaxWait)
	defer most.Stop()
	for {
		short := time.NewTimer(actPause)
		select {
		case <-short.C:
			if g.isIdle() {
				return nil
			}
		case <-most.C:
			short.Stop()
			return nil
		case <-ctx.Done():
			short.Stop()
			return ctx.Err()
		}
	}
}

func (g *gate) isIdle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.underWay == 0 && time.Since(g.last) >= actPause
}

func addLinks(r *render.Result, links []string) {
	r.Links = append(r.Links, links[:min(len(links), maxLinks-len(r.Links))]...)
}
