package ui

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	maxBody        = 1 << 20          // bytes of a request
	maxURL         = 16 << 10         // bytes of its URL
	maxAnswerTime  = 30 * time.Second // until an answer is given up
	readTimeout    = 10 * time.Second // until a request's body is whole
	refusalTimeout = time.Second      // for which a refused request is read on
	writeTimeout   = 60 * time.Second // until who does not read is left
	csp            = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src " +
		"'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	cookie   = "kumo-token" // with the port behind it
	tokenKey = "token"
)

// A guard admits requests: it checks their name, origin and token, bounds how many are answered at once, and restricts
// what browsers do with the answers. It knows of the site only which queue a path belongs to. Its fields do not change;
// the channels bound what runs at once.
type guard struct {
	cfg     *Config
	queueOf func(path string) *queue
	out     *responder

	requests  chan struct{} // a slot for each admitted request
	answering chan struct{} // a slot for each request that is being answered
}

// wrap returns next behind the guard.
func (g *guard) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", csp)
		h.Set("Cache-Control", "no-store")
		archived := g.cfg.Only == nil && strings.HasPrefix(r.URL.Path, "/archived/")
		if !archived { // whose pages are no part of this origin
			h.Set("Referrer-Policy", "same-origin") // without any browsers say of a form only that its origin is null
			h.Set("X-Frame-Options", "DENY")
			h.Set("Cross-Origin-Resource-Policy", "same-origin")
			h.Set("Cross-Origin-Opener-Policy", "same-origin")
		}
		if p := g.checkRequest(r, archived); p != nil {
			g.refuse(w, r, p)
			return
		}
		if !archived && g.setsCookie(w, r) {
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if isEvents(r) {
			next.ServeHTTP(w, r)
			return
		}
		select {
		case g.requests <- struct{}{}:
			defer func() { <-g.requests }()
		default:
			g.refuse(w, r, errRequests)
			return
		}
		if g.cfg.Only != nil {
			next.ServeHTTP(w, r)
			return
		}
		if err := bodyOf(w, r); err != nil {
			g.refuse(w, r, badRequest("read the request's body: %v", err))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), maxAnswerTime)
		defer cancel()
		r = r.WithContext(ctx)
		if q := g.queueOf(r.URL.Path); q != nil {
			g.answerQueued(q, next, w, r)
			return
		}
		select {
		case g.answering <- struct{}{}:
			defer func() { <-g.answering }()
		case <-ctx.Done():
			g.out.fail(w, r, ctx.Err())
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
		next.ServeHTTP(w, r)
	})
}

// checkRequest is why a request is refused, before anything is done for it; nil if it is not.
func (g *guard) checkRequest(r *http.Request, archived bool) *problem {
	switch {
	case !g.isCalled(r.Host): // another site's name leads here
		return &problem{Status: http.StatusMisdirectedRequest, Title: "Not this server's name",
			Detail: "call it by its address, by localhost, or by the name that --ui was given"}
	case len(r.RequestURI) > maxURL:
		return &problem{Status: http.StatusRequestURITooLong, Title: "The URL is too long"}
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !g.fromHere(r):
		return &problem{Status: http.StatusForbidden, Title: "Sent by another site"}
	case !archived && embedded(r):
		return &problem{Status: http.StatusForbidden, Title: "A part of another site's page"}
	case !archived && !g.hasToken(r): // pages of the archive have a key in their URL
		return errToken
	}
	return nil
}

// refuse answers a request that is refused, and closes its connection: a client without the token holds none for long,
// even if it sends its body slowly.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errToken) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="kumo"`)
	}
	w.Header().Set("Connection", "close")
	out := http.NewResponseController(w)
	now := time.Now()
	_, _ = out.SetReadDeadline(now.Add(refusalTimeout)), out.SetWriteDeadline(now.Add(readTimeout)) // some writers have none
	g.out.fail(w, r, err)
}

var errRequests = &problem{Status: http.StatusServiceUnavailable, Title: "Too many requests at once",
	Detail: "ask again in a moment"}

// bodyOf reads a request's body before others wait for what it is about.
func bodyOf(w http.ResponseWriter, r *http.Request) error {
	if r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout)) // some writers have none
	text, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	return err
}

// isCalled reports whether a Host field names this server. A name that another site has made lead here is none:
// browsers would take what is answered for that site's.
func (g *guard) isCalled(host string) bool {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || slices.Contains(g.cfg.Hosts, name)
}

// isEvents reports whether a request is for events, which go on for long.
func isEvents(r *http.Request) bool {
	one, _ := path.Match("/crawls/*/events", r.URL.Path) // the patterns are right
	all, _ := path.Match("/crawls/*/cluster/events", r.URL.Path)
	return one || all
}

// embedded reports whether a page of another site asks by itself, as for an image: it may lead here, and no more. Parts
// of archived pages, which are of no origin, are asked for so, too.
func embedded(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Dest") != "document"
}

// fromHere reports whether a request that changes something was made by a page of this server, as far as the browser
// tells, or by a program that is no browser.
func (g *guard) fromHere(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	switch {
	case site != "" && site != "same-origin":
		return false
	case origin == "", origin == "null" && site == "same-origin": // null: where no referrer is to be told
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

// hasToken reports whether a request has the token: in a cookie, in a header field as programs have it, or in the URL,
// as the first request of a browser has it.
func (g *guard) hasToken(r *http.Request) bool {
	if g.cfg.Token == "" {
		return true
	}
	if given := r.URL.Query().Get(tokenKey); given != "" && r.Method == http.MethodGet {
		return same(given, g.cfg.Token)
	}
	if c, err := r.Cookie(cookieOf(r)); err == nil && same(c.Value, g.cfg.Token) {
		return true
	}
	given, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return is && same(given, g.cfg.Token)
}

// setsCookie answers a request that has the token in its URL with a cookie, and leads to the same URL without it.
func (g *guard) setsCookie(w http.ResponseWriter, r *http.Request) bool {
	q := r.URL.Query()
	if g.cfg.Token == "" || q.Get(tokenKey) == "" || r.Method != http.MethodGet {
		return false
	}
	http.SetCookie(w, &http.Cookie{Name: cookieOf(r), Value: g.cfg.Token, Path: "/", HttpOnly: true, Secure: g.cfg.Secure,
		SameSite: http.SameSiteStrictMode})
	u := *r.URL
	q.Del(tokenKey)
	u.RawQuery = q.Encode()
	to := "/" + strings.TrimLeft(u.RequestURI(), "/")
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" ||
		site == "" && strings.Contains(r.Header.Get("Accept"), "text/html") {
		// A browser that another site, or a file, has led here does not send the cookie when it is redirected: it does when
		// this page leads it on.
		g.out.render(w, http.StatusOK, "enter", to)
		return true
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return true
}

// cookieOf is the name of the cookie with the token. Browsers send cookies to all ports of a host, where other crawls'
// pages may be.
func cookieOf(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return cookie + "-" + port
	}
	return cookie
}

var errToken = &problem{Status: http.StatusUnauthorized, Title: "The token is missing, or another crawl's",
	Detail: "Run kumo open FOLDER with the crawl's folder, as the user who serves this page, and open the URL that it " +
		"prints. Programs send the token as: Authorization: Bearer TOKEN"}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// remoteHost is from where is asked.
func remoteHost(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return fmt.Sprint(r.RemoteAddr)
}
