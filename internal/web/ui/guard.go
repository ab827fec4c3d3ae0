package ui

import (
	"context"
	"crypto/subtle"
	"fmt"
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
	maxBody = 1 << 20          // bytes of a request
	maxURL  = 16 << 10         // bytes of its URL
	longest = 30 * time.Second // until an answer is given up
	writing = 60 * time.Second // until who does not read is left
	csp     = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src " +
		"'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	cookie   = "kumo-token" // with the port behind it
	tokenKey = "token"
)

// guard lets in who may ask, as many as can be answered, and has browsers do no more than a page needs.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", csp)
		h.Set("Cache-Control", "no-store")
		archived := s.cfg.Only == nil && strings.HasPrefix(r.URL.Path, "/archived/")
		if !archived { // whose pages are no part of this origin
			h.Set("Referrer-Policy", "same-origin") // without any browsers say of a form only that its origin is null
			h.Set("X-Frame-Options", "DENY")
			h.Set("Cross-Origin-Resource-Policy", "same-origin")
			h.Set("Cross-Origin-Opener-Policy", "same-origin")
		}
		switch {
		case !s.isCalled(r.Host): // another site's name leads here
			s.fail(w, r, &problem{Status: http.StatusMisdirectedRequest, Title: "Not this server's name",
				Detail: "call it by its address, by localhost, or by the name that --ui was given"})
			return
		case len(r.RequestURI) > maxURL:
			s.fail(w, r, &problem{Status: http.StatusRequestURITooLong, Title: "The URL is too long"})
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead && !s.fromHere(r):
			s.fail(w, r, &problem{Status: http.StatusForbidden, Title: "Sent by another site"})
			return
		case !archived && embedded(r):
			s.fail(w, r, &problem{Status: http.StatusForbidden, Title: "A part of another site's page"})
			return
		case !archived && !s.knows(w, r): // pages of the archive have a key in their URL
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if isEvents(r) || s.cfg.Only != nil {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), longest)
		defer cancel()
		r = r.WithContext(ctx)
		if q := s.queueOf(r.URL.Path); q != nil {
			s.patiently(q, next, w, r)
			return
		}
		select {
		case s.asks <- struct{}{}:
			defer func() { <-s.asks }()
		case <-ctx.Done():
			s.fail(w, r, ctx.Err())
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writing))
		next.ServeHTTP(w, r)
	})
}

// isCalled reports whether a Host field names this server. A name that another site has made lead here is none:
// browsers would take what is answered for that site's.
func (s *Server) isCalled(host string) bool {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || slices.Contains(s.cfg.Hosts, name)
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
func (s *Server) fromHere(r *http.Request) bool {
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

// knows lets in who has the token: in a cookie or, as a program has it, in a field; or in the URL for the first time,
// which leads to the same without it. It answers others.
func (s *Server) knows(w http.ResponseWriter, r *http.Request) bool {
	if s.cfg.Token == "" {
		return true
	}
	if given := r.URL.Query().Get(tokenKey); given != "" && r.Method == http.MethodGet {
		if !same(given, s.cfg.Token) {
			s.fail(w, r, errToken)
			return false
		}
		http.SetCookie(w, &http.Cookie{Name: cookieOf(r), Value: s.cfg.Token, Path: "/", HttpOnly: true, Secure: s.cfg.Secure,
			SameSite: http.SameSiteStrictMode})
		u := *r.URL
		q := u.Query()
		q.Del(tokenKey)
		u.RawQuery = q.Encode()
		http.Redirect(w, r, "/"+strings.TrimLeft(u.RequestURI(), "/"), http.StatusSeeOther)
		return false
	}
	if c, err := r.Cookie(cookieOf(r)); err == nil && same(c.Value, s.cfg.Token) {
		return true
	}
	if given, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); is && same(given, s.cfg.Token) {
		return true
	}
	s.fail(w, r, errToken)
	return false
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
	Detail: "kumo open -o FOLDER prints the URL with the token; programs send it as: Authorization: Bearer TOKEN"}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// remoteHost is from where is asked.
func remoteHost(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return fmt.Sprint(r.RemoteAddr)
}
