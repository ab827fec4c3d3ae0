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
	maxAnswerTime  = 30 * time.Second // until a request is answered
	readTimeout    = 10 * time.Second // until a request's body is complete
	refusalTimeout = time.Second      // for reading the rest of a refused request
	writeTimeout   = 60 * time.Second // for a client that does not read
	csp            = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	cookie   = "kumo-token" // followed by the port
	tokenKey = "token"
)

// A guard admits requests: it checks their host name, origin and token, limits the number of concurrent requests, and
// restricts what browsers do with the answers. It knows nothing about the site except the queue that a path belongs to.
// Its fields do not change; the channels limit concurrency.
type guard struct {
	cfg     *Config
	queueOf func(path string) *queue
	out     *responder

	requests  chan struct{} // a slot for each admitted request
	answering chan struct{} // a slot for each request that is being answered
}

// wrap returns a handler that passes admitted requests to next.
func (g *guard) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", csp)
		h.Set("Cache-Control", "no-store")
		archived := g.cfg.Only == nil && strings.HasPrefix(r.URL.Path, "/archived/")
		if !archived { // archived pages have no origin
			h.Set("Referrer-Policy", "same-origin") // otherwise, browsers send the origin of forms as null
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
		if isStream(r) {
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

// checkRequest returns the reason for refusing a request; nil if it is admitted.
func (g *guard) checkRequest(r *http.Request, archived bool) *problem {
	switch {
	case !g.isCalled(r.Host): // a name of another site that resolves to this server
		return &problem{Status: http.StatusMisdirectedRequest, Title: "Unknown server name",
			Detail: "use its address, localhost, or a name given to --ui"}
	case len(r.RequestURI) > maxURL:
		return &problem{Status: http.StatusRequestURITooLong, Title: "The URL is too long"}
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !g.fromHere(r):
		return &problem{Status: http.StatusForbidden, Title: "Sent by another site"}
	case !archived && embedded(r):
		return &problem{Status: http.StatusForbidden, Title: "Embedded in a page of another site"}
	case !archived && !g.hasToken(r): // archived pages have a key in their URL
		return errToken
	}
	return nil
}

// refuse answers a request with an error and closes its connection, so that a client without the token cannot hold it
// for long, even if it sends its body slowly.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errToken) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="kumo"`)
	}
	w.Header().Set("Connection", "close")
	out := http.NewResponseController(w)
	now := time.Now()
	_, _ = out.SetReadDeadline(
		now.Add(refusalTimeout),
	), out.SetWriteDeadline(
		now.Add(readTimeout),
	) // some writers do not support deadlines
	g.out.fail(w, r, err)
}

var errRequests = &problem{Status: http.StatusServiceUnavailable, Title: "Too many requests at once",
	Detail: "try again in a moment"}

// bodyOf reads a request's body before the request occupies a slot of its queue.
func bodyOf(w http.ResponseWriter, r *http.Request) error {
	if r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	// some writers do not support deadlines
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout))
	text, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	return err
}

// isCalled reports whether a Host field names this server. It rejects names of other sites that resolve to this server:
// browsers would treat the answers as that site's.
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

// isStream reports whether a request is for a stream of events or a download, which take long.
func isStream(r *http.Request) bool {
	return slices.ContainsFunc(streams, func(pattern string) bool {
		is, _ := path.Match(pattern, r.URL.Path) // the patterns are valid
		return is
	})
}

var streams = []string{"/crawls/*/events", "/crawls/*/cluster/events", "/crawls/*/download/*", "/crawls/*/audit/*/csv"}

// embedded reports whether another site's page loads a resource by itself, such as an image: other sites may only link
// here. Parts of archived pages, which have no origin, are also loaded in this way.
func embedded(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Dest") != "document"
}

// fromHere reports whether a changing request comes from a page of this server, as far as the browser reports it, or
// from a program that is no browser.
func (g *guard) fromHere(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	switch {
	case site != "" && site != "same-origin":
		return false
	case origin == "", origin == "null" && site == "same-origin": // browsers send null if the referrer is suppressed
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

// hasToken reports whether a request has the token: in a cookie, in a header field (programs), or in the URL (a
// browser's first request).
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

// setsCookie answers a request with the token in its URL: it sets a cookie and redirects to the same URL without it.
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
		// A browser that came from another site or a file does not send the cookie after a redirect. It does if this
		// page leads to the URL.
		g.out.render(w, http.StatusOK, "enter", to)
		return true
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return true
}

// cookieOf returns the name of the token's cookie. It contains the port, as browsers send cookies to all ports of a
// host, and other crawls' pages may be there.
func cookieOf(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return cookie + "-" + port
	}
	return cookie
}

var errToken = &problem{Status: http.StatusUnauthorized, Title: "The token is missing, or belongs to another crawl",
	Detail: "Run kumo open FOLDER with the crawl's folder, as the user who runs the server, and open the URL that it " +
		"prints. Programs send the token as: Authorization: Bearer TOKEN"}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// remoteHost returns the client's address.
func remoteHost(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return fmt.Sprint(r.RemoteAddr)
}
