package ui

import (
	"context"
	"errors"
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
		return nil, badRequest("%q is no URL: it begins with http:// or https:// and a host", cut(url, 200))
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
	p.URLs = []inspect.Known{}
	err = c.view.use(ctx, func(v *inspect.View) error {
		for k, err := range v.SeenFrom(ctx, prefix, after, n+1) {
			if p.Partial = errors.Is(err, inspect.ErrBehind); err != nil {
				return unless(p.Partial, err)
			}
			p.URLs = append(p.URLs, k)
		}
		return nil
	})
	if len(p.URLs) > n {
		p.URLs = p.URLs[:n]
		p.Next = p.URLs[n-1].URL
	}
	return p, err
}
