package ui

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"kumo/internal/app/lookup"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/parse"
)

// archivedPages serves archived answers as pages, in a sandbox. Its fields do not change; any goroutine may use it.
type archivedPages struct {
	crawls *crawlSet
	keys   *signer // for URLs of archived pages
	out    *responder
	secure bool // served over TLS
	log    *slog.Logger
}

// path returns the URL path prefix of a crawl's archived pages. Its key authorizes them, because sandboxed pages have
// no origin and thus no cookie. Only they contain URLs with it. It is valid for clients with the same address.
func (h *archivedPages) path(c *crawl, r *http.Request) string {
	return "/archived/" + h.key(c, r) + "/" + url.PathEscape(c.name)
}

func (h *archivedPages) key(c *crawl, r *http.Request) string {
	return h.keys.sign("archived " + c.name + " " + remoteHost(r))
}

// url returns the URL of an archived page.
func (h *archivedPages) url(c *crawl, r *http.Request, of string) string {
	return h.path(c, r) + "?url=" + url.QueryEscape(of)
}

// sandbox returns a policy under which a browser only displays a page: no scripts, forms, plug-ins or ways out of its
// frame, and nothing loaded except from the archive. It may be framed by any page: other archived pages have no origin
// that could be named, and other sites do not know its URL.
func sandbox(from string) string {
	return "sandbox; default-src 'none'; script-src 'none'; object-src 'none'; form-action 'none'; base-uri 'none'; " +
		"img-src " + from + " data:; style-src " + from + " 'unsafe-inline' data:; font-src " + from + " data:; media-src " +
		from + " data:; frame-src " + from
}

// serve serves an archived page or a part of one. Its links lead into the archive.
func (h *archivedPages) serve(w http.ResponseWriter, r *http.Request) {
	c := h.crawls.named(r.PathValue("crawl"))
	if c == nil || !same(r.PathValue("key"), h.key(c, r)) {
		h.out.fail(w, r, &problem{http.StatusNotFound, "There is no such page", "start at the record of the page"})
		return
	}
	from := "'self'"
	if !strings.Contains(r.Host, "[") { // an IPv6 address, which a policy cannot contain
		scheme := "http://"
		if h.secure {
			scheme = "https://"
		}
		from = scheme + r.Host + h.path(c, r)
	}
	w.Header().Set("Content-Security-Policy", sandbox(from))
	resp, err := h.response(c, r)
	if err != nil {
		p := problemOf(err)
		writeNotice(w, p.Status, "Not in the archive", r.FormValue("url"), "")
		if !errors.Is(err, lookup.ErrNoAnswer) && !errors.Is(err, lookup.ErrNoRecord) && p.Status >= 500 {
			h.log.Warn("an archived page cannot be read", "crawl", c.name, "error", err.Error())
		}
		return
	}
	if to := resp.Header.Get("Location"); to != "" && resp.Status >= 300 && resp.Status < 400 {
		if u, err := resolve(resp.URL, to); err == nil {
			http.Redirect(w, r, h.url(c, r, u), http.StatusFound)
			return
		}
	}
	h.write(w, r, c, resp)
}

// response returns the response to show: for a rendered page, the document after its scripts.
func (h *archivedPages) response(c *crawl, r *http.Request) (*page.Response, error) {
	if id, err := strconv.ParseInt(r.FormValue("id"), 10, 64); err == nil {
		rec, err := c.archive.Record(id)
		if err != nil {
			return nil, err
		}
		return c.archive.Document(r.Context(), rec)
	}
	u, err := weburl.Parse(r.FormValue("url"))
	if err != nil {
		return nil, lookup.ErrNoAnswer
	}
	return c.archive.DocumentOf(r.Context(), u.Canonical().String())
}

func resolve(base, to string) (string, error) {
	b, err := weburl.Parse(base)
	if err != nil {
		return "", err
	}
	u, err := b.Resolve(to)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// write writes an answer in a form that is safe to display in a browser.
func (h *archivedPages) write(w http.ResponseWriter, r *http.Request, c *crawl, resp *page.Response) {
	kind := lookup.Type(resp)
	body := resp.Body
	switch {
	case isFont(kind):
		// Browsers load fonts only from servers that allow the page's origin. A sandboxed page has none, so any may.
		w.Header().Set("Access-Control-Allow-Origin", "*")
	case parse.CanRewrite(kind):
		given, err := parse.New(parse.Config{}).Rewrite(nil, resp, kind, func(to weburl.URL, kind page.Kind) (string, bool) {
			full := to.String()
			bare, fragment, has := strings.Cut(full, "#")
			at := h.url(c, r, bare)
			if has {
				at += "#" + fragment
			}
			return at, true
		})
		if err != nil { // unchanged, its links would lead out of the archive
			writeNotice(w, http.StatusUnprocessableEntity, "The page cannot be shown", resp.URL, err.Error())
			return
		}
		body = given
	case strings.HasPrefix(kind, "image/"), strings.HasPrefix(kind, "audio/"),
		strings.HasPrefix(kind, "video/"):
	case lookup.IsText(kind):
		kind = "text/plain; charset=utf-8"
		if t, err := lookup.TextOf(resp); err == nil {
			body = []byte(t.Text)
		}
	default:
		writeNotice(w, http.StatusOK, "Not shown", resp.URL,
			fmt.Sprintf("the type %s is not displayed here; kumo export and other tools extract it from the archive",
				kind))
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body) // the client may have disconnected
}

// isFont reports whether a media type is that of a font: also the types of the time before font/woff.
func isFont(kind string) bool {
	return strings.HasPrefix(kind, "font/") || strings.HasPrefix(kind, "application/font-") ||
		strings.HasPrefix(kind, "application/x-font-") || kind == "application/vnd.ms-fontobject"
}

// writeNotice writes a small page in place of an archived one.
func writeNotice(w http.ResponseWriter, status int, title, of, why string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html><meta charset=utf-8><title>%s</title><body><h1>%[1]s</h1><p>%s<p>%s", title,
		show(cut(of, 2000)), show(why))
}
