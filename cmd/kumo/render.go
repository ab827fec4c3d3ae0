package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"kumo/internal/app/setting"
	"kumo/internal/base/advice"
	"kumo/internal/base/machine"
	"kumo/internal/content/policy"
	"kumo/internal/content/render/chromium"
	"kumo/internal/engine/crawl"
)

// memoryPerPage is the memory that a page in a browser needs, with some room.
const memoryPerPage = 400 << 20

const maxPagesAtOnce = 16

// renderer returns the browser that renders a crawl's pages. It starts with the first page. nil: no page is rendered.
func (o *options) renderer() (crawl.Renderer, error) {
	j := &o.Job
	if !o.renders() || o.noFetch {
		return nil, nil
	}
	cfg := chromium.PoolConfig{Pages: o.Browser.Pages, Browser: chromium.Config{Path: o.Browser.Path,
		NoSandbox: o.Browser.NoSandbox, Agent: j.UserAgent(), Timeout: o.Browser.Timeout, MaxRequests: maxPageRequests}}
	if cfg.Pages == 0 {
		cfg.Pages = pagesAtOnce()
	}
	pool, err := chromium.NewPool(cfg)
	switch {
	case errors.Is(err, chromium.ErrSandbox):
		return nil, advice.With(fmt.Errorf("--%s: %w", setting.RenderKey, err), "--"+setting.NoSandboxKey+" turns it off")
	case err != nil:
		return nil, advice.With(fmt.Errorf("--%s: %w", setting.RenderKey, err), "--browser names a program")
	}
	return pool, nil
}

const maxBehavior = 1 << 20 // bytes of the file --behavior

// loadBehavior reads the script that is run on rendered pages, for each run.
func (o *options) loadBehavior() error {
	if o.Browser.Behavior == "" || o.noFetch {
		return nil
	}
	text, err := os.ReadFile(o.Browser.Behavior)
	switch {
	case err != nil:
		return usagef("--%s: %w", setting.BehaviorKey, err)
	case len(text) > maxBehavior:
		return usagef("--%s %s: the file is longer than 1 MiB", setting.BehaviorKey, o.Browser.Behavior)
	case !o.renders():
		return usagef("--%s is for rendered pages: add --%s auto or always", setting.BehaviorKey, setting.RenderKey)
	}
	o.Job.Crawl.RenderScript = string(text)
	return nil
}

// renders reports whether the crawl renders pages of any host.
func (o *options) renders() bool {
	mode := o.Job.Crawl.Render
	return mode != "" && mode != policy.RenderNever || o.Job.Crawl.Overrides.Renders()
}

const maxPageRequests = 300 // requests of a page; later ones are blocked

// pagesAtOnce returns how many pages a machine can render at once.
func pagesAtOnce() int {
	n := runtime.GOMAXPROCS(0)
	if gb := machine.NewLimits(".").Read().MemoryGB; gb > 0 {
		n = min(n, int(gb/2*(1<<30)/memoryPerPage))
	}
	return min(max(n, 1), maxPagesAtOnce)
}
