package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/cookies"
	"kumo/internal/content/fetch"
)

// A Getter performs one HTTP exchange, with cookies.
type Getter interface {
	Get(ctx context.Context, req fetch.Request, resp *page.Response) error
	Allow(host string)
}

// Sessions are the logins of a running crawl. The methods are safe for concurrent use. Nil Sessions have no hosts.
type Sessions struct {
	get   Getter
	jar   *cookies.Jar
	sites map[string]*session // by host
	all   []*session
}

// A session is the login at one site.
type session struct {
	*Site
	url weburl.URL

	mu     sync.Mutex // guards the fields below; held during a login
	number uint64     // of the current or the last login
	active bool
	wasted int   // consecutive logins that ended before any page was fetched
	failed error // permanent
}

// New returns sessions that log in on demand. jar must be the getter's jar.
func New(c *Config, get Getter, jar *cookies.Jar) (*Sessions, error) {
	s := &Sessions{get: get, jar: jar, sites: map[string]*session{}}
	for i := range c.Sites {
		u, err := weburl.Parse(c.Sites[i].URL)
		if err != nil {
			return nil, fmt.Errorf("login at %s: %w", c.Sites[i].URL, err)
		}
		one := &session{Site: &c.Sites[i], url: u.Canonical()}
		s.all = append(s.all, one)
		get.Allow(one.url.Host()) // the user has configured the host
		for _, host := range one.PostTo {
			get.Allow(host)
		}
		for _, host := range one.Hosts {
			s.sites[host] = one
		}
	}
	return s, nil
}

// Private reports whether cookies of a host are secret because of a login.
func (c *Config) Private(host string) bool {
	return slices.ContainsFunc(c.Sites, func(s Site) bool {
		return slices.Contains(s.Hosts, host) ||
			slices.ContainsFunc(s.PostTo, func(to string) bool { return cookies.HostOf(to) == host })
	})
}

// PrivateFor reports whether a cookie may be sent to a host whose cookies are secret because of a login.
func (c *Config) PrivateFor(k *cookies.Cookie) bool {
	return slices.ContainsFunc(c.Sites, func(s Site) bool {
		return slices.ContainsFunc(s.Hosts, k.Covers) ||
			slices.ContainsFunc(s.PostTo, func(to string) bool { return k.Covers(cookies.HostOf(to)) })
	})
}

// Has reports whether a host needs a login.
func (s *Sessions) Has(host string) bool { return s != nil && s.sites[host] != nil }

// NeedsText reports whether the text of a host's pages is needed to recognize an ended session.
func (s *Sessions) NeedsText(host string) bool {
	return s.Has(host) && s.sites[host].Expired.Text != ""
}

// LogInAll logs in at all sites.
func (s *Sessions) LogInAll(ctx context.Context) error {
	if s == nil {
		return nil
	}
	for _, one := range s.all {
		if _, err := s.ensureLogin(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// EnsureLogin logs in for a host, unless there is a session. It returns the number of the session, to be passed to
// CheckExpired. If it fails, nothing may be fetched from the host.
func (s *Sessions) EnsureLogin(ctx context.Context, host string) (number uint64, err error) {
	return s.ensureLogin(ctx, s.sites[host])
}

// IsReady reports whether a host has a session or its login has failed, so that EnsureLogin makes no request.
func (s *Sessions) IsReady(host string) bool {
	one := s.sites[host]
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.active || one.failed != nil
}

func (s *Sessions) ensureLogin(ctx context.Context, one *session) (uint64, error) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.active || one.failed != nil {
		return one.number, one.failed
	}
	var err error
	if one.wasted++; one.wasted > one.Attempts {
		err = fmt.Errorf("%d consecutive sessions ended before a page was fetched", one.Attempts)
	} else {
		for range one.Attempts {
			if err = s.logIn(ctx, one); err == nil || ctx.Err() != nil {
				break
			}
		}
	}
	if ctx.Err() != nil {
		one.wasted--
		return 0, ctx.Err()
	}
	if err != nil {
		one.failed = fmt.Errorf("log in at %s: %w", one.url.String(), err)
		return 0, one.failed
	}
	one.active = true
	one.number++
	return one.number, nil
}

// CheckExpired reports whether a response shows that the session has ended. The next EnsureLogin then logs in again,
// unless that has already happened.
func (s *Sessions) CheckExpired(host string, number uint64, u weburl.URL, resp *page.Response) bool {
	one := s.sites[host]
	over := one.isExpired(u, resp)
	one.mu.Lock()
	defer one.mu.Unlock()
	switch {
	case number != one.number:
	case over:
		one.active = false
	default:
		one.wasted = 0
	}
	return over
}

// isExpired checks a response. Its body must be decoded if Expired has a text.
func (one *session) isExpired(u weburl.URL, resp *page.Response) bool {
	if samePage(u, one.url) {
		return false // the login page is the same with and without a session
	}
	if to, err := u.Resolve(resp.Header.Get("Location")); resp.Status/100 == 3 && err == nil &&
		samePage(to.Canonical(), one.url) {
		return true
	}
	return slices.Contains(one.Expired.Status, resp.Status) ||
		one.Expired.Text != "" && bytes.Contains(resp.Body, []byte(one.Expired.Text))
}

// samePage reports whether two URLs differ only in their queries.
func samePage(a, b weburl.URL) bool {
	x, _, _ := strings.Cut(a.RequestURI(), "?")
	y, _, _ := strings.Cut(b.RequestURI(), "?")
	return x == y && a.Host() == b.Host()
}

const (
	maxRedirects = 10
	maxPage      = 4 << 20 // bytes of a page with a form
)

// logIn performs one login.
func (s *Sessions) logIn(ctx context.Context, one *session) error {
	u, resp, err := s.follow(ctx, one, one.url, nil)
	if err != nil {
		return err
	}
	f := findForm(resp.Body, one.Fields)
	if f == nil {
		return fmt.Errorf("%s (status %d) has no form with the fields %s", u.String(), resp.Status, one.names())
	}
	to, err := f.target(u)
	if err != nil || !to.IsHTTP() {
		return fmt.Errorf("the form's action is not an http(s) URL: %q", f.action)
	}
	to = to.Canonical()
	if err := one.checkPost(u, to); err != nil {
		return err
	}
	filled := []byte(f.filled(one.Fields))
	if len(filled) > maxForm {
		return errors.New("the form is too long")
	}
	if !f.post {
		return errors.New("the form's method is not POST: the password would become part of a URL")
	}
	at, resp, err := s.follow(ctx, one, to, filled)
	if err != nil {
		return err
	}
	return s.check(one, at, resp)
}

func (one *session) names() string {
	return strings.Join(slices.Sorted(maps.Keys(one.Fields)), ", ")
}

// follow requests a URL, or posts a form to it, and follows redirects. A redirect that repeats the post (307, 308) must
// lead to a URL to which the form may be posted.
func (s *Sessions) follow(ctx context.Context, one *session, u weburl.URL, filled []byte) (
	weburl.URL, *page.Response, error) {
	for range maxRedirects {
		resp := new(page.Response)
		req := fetch.Request{URL: u.String(), Form: filled, Private: true, MaxBody: maxPage}
		if err := s.get.Get(ctx, req, resp); err != nil {
			return u, nil, err
		}
		to, err := u.Resolve(resp.Header.Get("Location"))
		if resp.Status/100 != 3 || resp.Header.Get("Location") == "" || err != nil || !to.IsHTTP() {
			if err := fetch.Decode(resp, maxPage); err != nil {
				return u, nil, err
			}
			return u, resp, nil
		}
		to = to.Canonical()
		if seeOther(resp.Status) {
			filled = nil
		} else if filled != nil {
			if err := one.checkPost(u, to); err != nil {
				return u, nil, fmt.Errorf("status %d: %w", resp.Status, err)
			}
		}
		u = to
	}
	return u, nil, errors.New("too many redirects")
}

// checkPost returns an error unless the fields may be sent to a URL. It must be on the host and port of the login page
// in the login file, or on one of PostTo. Nothing is sent over http if the login file's URL or the page with the form
// is https.
func (one *session) checkPost(page, to weburl.URL) error {
	switch {
	case to.Scheme() != "https" && (page.Scheme() == "https" || one.url.Scheme() == "https"):
		return fmt.Errorf("post the form to %s: the login page is https, but this URL is not", to.String())
	case to.Host() != one.url.Host() && !slices.Contains(one.PostTo, to.Host()):
		return fmt.Errorf("post the form to %s: not the host of the login page; if it may receive the password, add "+
			"post-to: [%q] to this site in the login file", to.String(), to.Host())
	}
	return nil
}

// seeOther reports whether a redirect is followed by a GET.
func seeOther(status int) bool {
	return status == http.StatusFound || status == http.StatusSeeOther || status == http.StatusMovedPermanently
}

// check returns an error if a response shows that the login failed.
func (s *Sessions) check(one *session, at weburl.URL, resp *page.Response) error {
	want := one.Success
	switch {
	case want.Status != 0 && resp.Status != want.Status:
		return fmt.Errorf("%s has status %d, not %d", at.String(), resp.Status, want.Status)
	case want.Status == 0 && resp.Status >= http.StatusBadRequest:
		return fmt.Errorf("%s has status %d", at.String(), resp.Status)
	case want.Text != "" && !bytes.Contains(resp.Body, []byte(want.Text)):
		return fmt.Errorf("%s (status %d) does not contain the text of success", at.String(), resp.Status)
	case want.URL != "" && !strings.HasPrefix(at.String(), want.URL) && !strings.HasPrefix(at.RequestURI(), want.URL):
		return fmt.Errorf("the login led to %s, not to %s", at.String(), want.URL)
	case want.Cookie != "" && !s.hasCookie(one, want.Cookie):
		return fmt.Errorf("the cookie %s was not set", want.Cookie)
	case want == (Success{}) && findForm(resp.Body, one.Fields) != nil:
		return fmt.Errorf("%s contains the form again", at.String())
	}
	return nil
}

func (s *Sessions) hasCookie(one *session, name string) bool {
	return slices.ContainsFunc(append(slices.Clone(one.Hosts), cookies.HostOf(one.url.Host())),
		func(host string) bool { return s.jar.HasNamed(host, name) })
}
