// Package get fetches a single URL for interactive use. It follows redirects, and neither checks robots.txt nor waits
// for delays.
package get

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"kumo/internal/app/job"
	"kumo/internal/base/advice"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/cookies"
	"kumo/internal/content/fetch"
	"kumo/internal/content/login"
	"kumo/internal/engine/seeds"
)

// A Client fetches URLs with its settings.
type Client struct {
	Fetch     fetch.Config // UserAgent defaults to a crawl's
	Redirects int          // maximum number of redirects to follow
	Logins    *login.Config
	NoCookies bool // do not send received cookies with the next request
}

// URL fetches a typed URL like a crawl, but ignores robots.txt and delays. It returns all responses in order, with
// decoded bodies. The last one is a redirect only if its target cannot be fetched, or with ErrRedirects. The typed host
// may be private; the target of a redirect may not, unless Fetch allows it. An error is returned with the responses
// received before it.
func (c Client) URL(ctx context.Context, typed string) ([]*page.Response, error) {
	u, err := seeds.ParseURL(typed)
	if err != nil {
		return nil, err
	}
	s, err := c.Begin(ctx, u)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var answers []*page.Response
	for {
		resp, err := s.Get(ctx, fetch.Request{URL: u.String()})
		if err != nil {
			return answers, err
		}
		answers = append(answers, resp)
		to, ok := redirectTarget(u, resp)
		switch {
		case !ok:
			return answers, nil
		case len(answers) > c.Redirects:
			return answers, redirectError(answers, to)
		}
		u = to
	}
}

// A Session fetches URLs with the same cookies and connections. It is safe for concurrent use.
type Session struct{ client *fetch.Client }

// Begin logs in, if that is configured, and returns a session, which the caller must close. The host of the URL may be
// private.
func (c Client) Begin(ctx context.Context, u weburl.URL) (s *Session, err error) {
	c.Fetch.UserAgent = cmp.Or(c.Fetch.UserAgent, job.UserAgent(""))
	if c.Fetch.Jar == nil && !c.NoCookies {
		cfg := cookies.Config{}
		if c.Logins != nil {
			cfg.Private = c.Logins.Private
		}
		c.Fetch.Jar = cookies.NewJar(cfg)
	}
	client, err := fetch.New(c.Fetch)
	if err != nil {
		return nil, advice.Usage("%w", err)
	}
	client.Allow(u.Host())
	if c.Logins != nil {
		sessions, err := login.New(c.Logins, client, c.Fetch.Jar)
		if err == nil {
			err = sessions.LogInAll(ctx)
		}
		if err != nil {
			client.Close()
			return nil, err
		}
	}
	return &Session{client}, nil
}

// Get fetches a URL, without following redirects. The response has a decoded body.
func (s *Session) Get(ctx context.Context, r fetch.Request) (*page.Response, error) {
	resp := new(page.Response)
	if err := s.client.Get(ctx, r, resp); err != nil {
		return nil, err
	}
	if err := fetch.Decode(resp, maxDecoded); err != nil {
		resp.Malformed = err.Error()
	}
	return resp, nil
}

// Close ends the session.
func (s *Session) Close() { s.client.Close() }

// ErrRedirects means that a URL redirects too often.
var ErrRedirects = errors.New("too many redirects")

// redirectError returns the error for too many redirects, and mentions a loop. A loop alone is not an error: a cookie
// may lead out of it.
func redirectError(answers []*page.Response, to weburl.URL) error {
	last := answers[len(answers)-1].URL
	if slices.ContainsFunc(answers, func(a *page.Response) bool { return a.URL == to.String() }) {
		return fmt.Errorf("%w: a loop, %s leads back to %s", ErrRedirects, last, to)
	}
	return fmt.Errorf("%w: %d in a row, and %s leads on to %s", ErrRedirects, len(answers)-1, last, to)
}

const maxDecoded = 64 << 20

// redirectTarget returns the URL that a response redirects to; false if there is none that can be fetched.
func redirectTarget(u weburl.URL, resp *page.Response) (weburl.URL, bool) {
	to := resp.Header.Get("Location")
	if resp.Status < 300 || resp.Status > 399 || to == "" {
		return u, false
	}
	v, err := u.Resolve(to)
	if err != nil || v.Scheme() != "http" && v.Scheme() != "https" {
		return u, false
	}
	return v.Canonical(), true
}
