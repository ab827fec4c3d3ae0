package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/get"
	"kumo/internal/base/advice"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/parse"
	"kumo/internal/content/render"
	"kumo/internal/content/render/chromium"
	"kumo/internal/engine/check"
	"kumo/internal/engine/seeds"
)

const renderLong = `What does a page show after its scripts?

The page is rendered by Chromium or Chrome, which must be installed. The browser has no network:
kumo fetches what the page requests, without robots.txt and delays. Only GET and HEAD requests are
answered; WebSockets and new windows are not. BASE is the URL of the page; a FILE without it is at
http://localhost/. The result compares links and main text with those of the page as received.
--json also has the document.`

const renderExample = `  kumo check render https://app.example/
  kumo check render https://app.example/ --screenshot app.png --html app.html
  kumo check render page.html https://app.example/dir/    # as if it had been found there`

// A pageRenderer renders the pages of kumo check render.
type pageRenderer struct {
	source
	page, screenshot string // names of files to write; "": none
}

func checkRender() *cobra.Command {
	r := new(pageRenderer)
	var asJSON bool
	cmd := &cobra.Command{Use: "render FILE|URL [BASE]", Short: "What does a page show after its scripts?", Long: renderLong,
		Example: renderExample, RunE: func(cmd *cobra.Command, args []string) error {
			out, err := r.run(cmd.Context(), args)
			if err != nil {
				return err
			}
			return printAnswer(cmd, out, asJSON)
		}}
	r.bind(cmd)
	cmd.SetFlagErrorFunc(readerFlagError)
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print indented JSON")
	r.bindBrowser(f)
	f.StringVar(&r.screenshot, "screenshot", "", "write a picture of the window to `FILE` (PNG)")
	f.StringVar(&r.page, "html", "", "write the document after its scripts to `FILE`")
	return cmd
}

func (r *pageRenderer) run(ctx context.Context, args []string) (out check.RenderOut, err error) {
	received := check.PageIn{}
	if err := r.source.page(ctx, args, &received); err != nil {
		return out, err
	}
	result, err := r.source.render(ctx, &received, r.screenshot != "")
	if err != nil {
		return out, err
	}
	if err := errors.Join(result.ShotErrors...); err != nil {
		return out, fmt.Errorf("take a screenshot: %w", err)
	}
	if err := errors.Join(writeIf(r.page, result.HTML), writeIf(r.screenshot, result.Shot(page.ShotView))); err != nil {
		return out, err
	}
	return check.Render(received, result)
}

// bindRender adds the flags of a command that can read a page after its scripts.
func (s *source) bindRender(cmd *cobra.Command) *cobra.Command {
	s.bind(cmd)
	cmd.Flags().BoolVar(&s.renders, "render", false, "read the page after its scripts, see kumo check render")
	s.bindBrowser(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("render", "jsonl")
	return cmd
}

func (s *source) bindBrowser(f *pflag.FlagSet) {
	f.StringVar(&s.browser.Path, "browser", "", "use this `PROGRAM` (default: the first of chromium, google-chrome in "+
		"PATH)")
	f.BoolVar(&s.browser.NoSandbox, "browser-no-sandbox", false, "turn the browser's sandbox off, as root must: only for "+
		"pages that are trusted")
}

// render renders a page that was received. If its URL is empty, it is set.
func (s *source) render(ctx context.Context, received *check.PageIn, screenshot bool) (*render.Result, error) {
	received.URL = cmp.Or(received.URL, "http://localhost/")
	u, err := seeds.ParseURL(received.URL)
	if err != nil {
		return nil, err
	}
	if kind := parse.MediaType(received.ContentType); kind != "" && !parse.IsHTML(kind) {
		return nil, usagef("%s is %s: only HTML can be rendered", u, kind)
	}
	cfg := s.browser
	cfg.Timeout = s.timeout
	browser, err := chromium.Start(ctx, cfg)
	switch {
	case errors.Is(err, chromium.ErrSandbox):
		return nil, advice.With(err, "--browser-no-sandbox turns it off")
	case err != nil:
		return nil, err
	}
	defer browser.Close()
	session, err := s.get.Begin(ctx, u)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	job := render.Job{URL: u.String(), Answer: answerer(session, u, received)}
	if screenshot {
		job.Shots = []page.ShotKind{page.ShotView}
	}
	result, err := browser.Render(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNothing, err)
	}
	return result, nil
}

// replaceByRendered replaces a page that was received by its document after scripts.
func (s *source) replaceByRendered(ctx context.Context, in *check.PageIn) error {
	result, err := s.render(ctx, in, false)
	if err != nil {
		return err
	}
	if !result.Complete {
		fmt.Fprintf(os.Stderr, "%s: still made requests when its time was over (see --timeout)\n", result.URL)
	}
	in.HTML, in.URL, in.ContentType = result.HTML, result.URL, "text/html; charset=utf-8"
	if in.Header != nil {
		in.Header = in.Header.Clone()
		in.Header.Set("Content-Type", in.ContentType)
	}
	return nil
}

// answerer answers the page's first request with the page as received, and others from the network.
func answerer(session *get.Session, u weburl.URL, received *check.PageIn) render.Answerer {
	return func(ctx context.Context, q *render.Request) (*render.Response, error) {
		if q.Document && q.URL == u.String() {
			header := received.Header.Clone()
			if header == nil {
				header = http.Header{}
			}
			header.Set("Content-Type", cmp.Or(received.ContentType, "text/html"))
			return &render.Response{Status: cmp.Or(received.Status, http.StatusOK), Header: header, Body: received.HTML}, nil
		}
		began := time.Now()
		resp, err := session.Get(ctx, fetch.Request{URL: q.URL, Head: q.Method == http.MethodHead})
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v after %v\n", q.URL, err, time.Since(began).Round(time.Millisecond))
			return nil, err
		}
		fmt.Fprintln(os.Stderr, answerLine(resp))
		return &render.Response{Status: resp.Status, Header: resp.Header, Body: resp.Body}, nil
	}
}

// writeIf writes a file if it has a name.
func writeIf(name string, data []byte) error {
	if name == "" {
		return nil
	}
	return os.WriteFile(name, data, 0o644)
}
