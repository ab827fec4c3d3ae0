package ui

import (
	"context"
	"net/http"

	"kumo/internal/app/inspect"
	"kumo/internal/base/weburl"
)

type urlPage struct {
	URLs    []inspect.Known `json:"urls"`
	Next    string          `json:"next,omitempty"`
	Partial bool            `json:"partial,omitempty"` // some are missing for a moment, until they are in order
}

func getExplanation(c *crawl, r *http.Request) (any, error) {
	return c.explain(r.Context(), r.FormValue("url"))
}

func (c *crawl) explain(ctx context.Context, url string) (x *inspect.Explanation, err error) {
	if u, err := weburl.Parse(url); err != nil || u.Host() == "" {
		return nil, noURL(url)
	}
	err = c.view.use(ctx, func(v *inspect.View) (err error) {
		x, err = v.Explain(ctx, url)
		return err
	})
	return x, err
}

func getURLs(c *crawl, r *http.Request, n int) (any, error) {
	return c.urlsFrom(r.Context(), r.FormValue("prefix"), r.FormValue("after"), n)
}

func (c *crawl) urlsFrom(ctx context.Context, prefix, after string, n int) (p urlPage, err error) {
	var more bool
	err = c.view.use(ctx, func(v *inspect.View) (err error) {
		p.URLs, p.Partial, more, err = upTo(n, v.SeenFrom(ctx, prefix, after, n+1))
		return err
	})
	if more {
		p.Next = p.URLs[n-1].URL
	}
	return p, err
}
