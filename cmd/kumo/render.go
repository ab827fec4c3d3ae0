package main

import (
	"errors"
	"fmt"
	"os"

	"kumo/internal/app/setting"
	"kumo/internal/base/advice"
	"kumo/internal/content/policy"
	"kumo/internal/content/render/chromium"
	"kumo/internal/engine/crawl"
)

// newRenderer returns the browser that renders a crawl's pages. It starts with the first page. nil: no page is rendered.
func newRenderer(o *options) (crawl.Renderer, error) {
	j := &o.Job
	if !renders(o) || o.noFetch || o.othersFetch {
		return nil, nil
	}
	cfg := chromium.PoolConfig{Pages: o.Browser.Pages, Browser: chromium.Config{Path: o.Browser.Path,
		NoSandbox: o.Browser.NoSandbox, Agent: j.UserAgent(), Timeout: o.Browser.Timeout,
		MaxRequests: chromium.MaxPageRequests}}
	if cfg.Pages == 0 {
		cfg.Pages = chromium.PagesAtOnce()
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

// browserOf returns the program that renders pages; "" if the machine has none.
func browserOf(o *options) string {
	path, err := chromium.Find(o.Browser.Path)
	if err != nil {
		return ""
	}
	return path
}

const maxBehavior = 1 << 20 // bytes of the file --behavior

// loadBehavior reads the script that is run on rendered pages, for each run.
func loadBehavior(o *options) error {
	if o.Browser.Behavior == "" || o.noFetch {
		return nil
	}
	text, err := os.ReadFile(o.Browser.Behavior)
	switch {
	case err != nil:
		return usagef("--%s: %w", setting.BehaviorKey, err)
	case len(text) > maxBehavior:
		return usagef("--%s %s: the file is longer than 1 MiB", setting.BehaviorKey, o.Browser.Behavior)
	case !renders(o):
		return usagef("--%s is for rendered pages: add --%s auto or always", setting.BehaviorKey, setting.RenderKey)
	}
	o.Job.Crawl.RenderScript = string(text)
	return nil
}

// renders reports whether the crawl renders pages of any host.
func renders(o *options) bool {
	mode := o.Job.Crawl.Render
	return mode != "" && mode != policy.RenderNever || o.Job.Crawl.Overrides.Renders()
}
