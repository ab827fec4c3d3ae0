package synthweb

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/url"
	"strconv"
	"sync"
)

// An Answer is a server's response to a GET, before content coding. A Flaky resource is in its second state.
type Answer struct {
	Ref    Ref
	Status int // 0 if there is no answer, from hosts that are refused, hanging or mute
	Header http.Header
	Body   []byte
}

// Page returns the answer to a GET of an absolute URL. Links in it have the URL's port. Hosts outside the web answer
// 421.
func (w *Web) Page(rawURL string) (Answer, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return Answer{}, fmt.Errorf("parse page URL: %w", err)
	}
	i, ok := w.hostOf(u.Host)
	if !ok {
		return Answer{Ref: Ref{Kind: Unknown}, Status: http.StatusMisdirectedRequest, Header: http.Header{}}, nil
	}
	port := w.cfg.usualPort()
	if u.Port() != "" {
		port, _ = strconv.Atoi(u.Port())
	}
	t := &writer{w: w, port: port}
	target := []byte(u.RequestURI())
	a := t.answer(w.locate(i, target), string(target))
	out := Answer{Ref: a.ref, Status: a.status, Header: http.Header{}}
	if w.hosts[i].silent() {
		return Answer{Ref: a.ref, Header: http.Header{}}, nil
	}
	setIf(out.Header, "Content-Type", a.contentType)
	setIf(out.Header, "Location", a.location)
	setIf(out.Header, "ETag", a.etag)
	setIf(out.Header, "Last-Modified", a.modified)
	t.plain(func(p []byte) { out.Body = append(out.Body, p...) })
	return out, nil
}

func setIf(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

func (h *host) silent() bool {
	return h.traits.has(Refused) || h.traits.has(Hanging) || h.traits.has(Mute)
}

// An answer is the head of a response. The writer that made it has the body.
type answer struct {
	ref         Ref
	status      int
	contentType string
	location    string
	version
}

func (t *writer) answer(r Ref, target string) answer {
	t.reset()
	a := answer{ref: r, status: http.StatusOK}
	if to, ok := t.w.cfg.target(r); ok {
		a.status = [...]int{301, 302, 307, 308}[r.N%4]
		t.from = r
		t.addr = t.redirection(t.addr[:0], to)
		a.location = string(t.addr)
		return a
	}
	if !t.w.alive(r) {
		a.status, a.contentType = 404, "text/html"
		t.notFound(target)
		return a
	}
	switch r.Kind {
	case Robots:
		status, text := t.w.robots(r.Host)
		a.status, a.contentType = status, "text/plain"
		t.text(text)
		t.seal()
	case Gone:
		a.status, a.contentType = [...]int{404, 404, 410}[r.N%3], "text/html"
		t.notFound(target)
	case Unknown:
		a.status, a.contentType = 404, "text/html"
		t.notFound(target)
	case Image, Style, Code:
		a.contentType = t.part(r)
	case Data, App:
		a.contentType = t.scriptPart(r)
	default:
		a.contentType = t.document(r)
		a.version = t.w.version(r)
	}
	return a
}

// redirection appends the Location of a redirect. Every other redirect within a host has a relative path.
func (t *writer) redirection(dst []byte, to Ref) []byte {
	if to.Host == t.from.Host && t.from.N%2 == 0 {
		return t.w.appendPath(dst, to, false)
	}
	return t.w.appendURL(dst, to, t.port)
}

// document writes an HTML page and returns its media type.
func (t *writer) document(r Ref) string {
	r = r.shown()
	if t.w.needsScript(r) {
		t.shell(r)
	} else {
		t.page(r, t.w.cfg.pageSize(r))
	}
	if t.declaresInHeader() {
		return "text/html; charset=" + t.tongue.charset
	}
	return "text/html"
}

func (c *Config) pageSize(r Ref) int {
	switch r.Kind {
	case Page:
		d := c.dice(r.Host, aboutSize, r.N)
		return int(min(d.Lognormal(1, c.SizeSpread), 32) * float64(c.MedianSize))
	case Large:
		return c.LargeSize
	}
	return 2 << 10
}

// part writes an embedded resource and returns its media type.
func (t *writer) part(r Ref) string {
	defer t.seal()
	switch r.Kind {
	case Image:
		t.made = append(t.made, picture()...)
		return "image/png"
	case Style:
		t.text("body { margin: 2em } /* " + strconv.Itoa(int(r.N)) + " */\n")
		return "text/css"
	}
	t.text("document.title += '" + strconv.Itoa(int(r.N)) + "'; // see /ghost/\n")
	return "text/javascript"
}

// picture returns a small PNG.
var picture = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 16, 16))); err != nil {
		panic("synthweb: encode PNG: " + err.Error())
	}
	return b.Bytes()
})
