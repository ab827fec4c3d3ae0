package parse

import (
	"bytes"
	"net/http"

	"kumo/internal/base/page"
)

// headers extracts the links of the response's header fields. They are relative to the response's URL.
func (p *Parser) headers(resp *page.Response) {
	if isRedirect(resp.Status) {
		if to := resp.Header.Get("Location"); to != "" {
			p.links.add(p.self, &reference{url: []byte(to), kind: page.Redirect})
			p.links.redirects = true
		}
	}
	if field := resp.Header.Get("Refresh"); field != "" {
		if seconds, ref, ok := parseRefresh([]byte(field)); ok {
			link := 0
			if len(ref) > 0 {
				link = p.links.add(p.self, &reference{url: ref, kind: page.Refresh})
			}
			p.says.refresh.set(seconds, link, len(ref) == 0)
		}
	}
	for _, field := range resp.Header.Values("Link") {
		p.linkField([]byte(field))
	}
	for _, field := range resp.Header.Values("X-Robots-Tag") {
		p.says.robots.header([]byte(field), p.cfg.Agent)
	}
	p.links.touched = false
}

// isRedirect reports whether a response with this status redirects by its Location field.
func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// linkField extracts the links of a Link field (RFC 8288, section 3 and appendix B.2). A link with an anchor describes
// another resource: it is a link, but not this page's canonical URL.
func (p *Parser) linkField(in []byte) {
	for {
		in = bytes.TrimLeft(in, " \t,")
		if len(in) == 0 || in[0] != '<' {
			return
		}
		end := bytes.IndexByte(in, '>')
		if end < 0 {
			return
		}
		ref := in[1:end]
		var params linkParams
		params, in = readLinkParams(in[end+1:])
		kind, ok := relKind(params.rel, page.Header)
		if kind == page.Canonical && params.anchored {
			kind = page.Header
		}
		if ok {
			p.links.add(p.self, &reference{ref, kind, params.rel, params.lang})
		}
	}
}

// linkParams are the parameters of a link that the package uses. The first rel applies.
type linkParams struct {
	rel, lang []byte
	anchored  bool
}

// readLinkParams parses the parameters of one link and returns the text after the comma that ends it.
func readLinkParams(in []byte) (p linkParams, rest []byte) {
	seen := false
	for {
		in = bytes.TrimLeft(in, " \t")
		if len(in) == 0 || in[0] != ';' {
			break
		}
		var name, value []byte
		name, value, in = linkParam(in[1:])
		switch {
		case equalFold(name, "rel") && !seen:
			p.rel, seen = value, true
		case equalFold(name, "hreflang") && p.lang == nil:
			p.lang = value
		case equalFold(name, "anchor"):
			p.anchored = true
		}
	}
	if i := bytes.IndexByte(in, ','); i >= 0 {
		return p, in[i+1:]
	}
	return p, nil
}

// linkParam parses `name`, `name=token` or `name="quoted"`.
func linkParam(in []byte) (name, value, rest []byte) {
	end := indexAny(in, "=;,")
	name, in = bytes.TrimSpace(in[:end]), in[end:]
	if len(in) == 0 || in[0] != '=' {
		return name, nil, in
	}
	in = bytes.TrimLeft(in[1:], " \t")
	if len(in) > 0 && in[0] == '"' {
		value, rest = quoted(in[1:])
		return name, value, rest
	}
	end = indexAny(in, ";,")
	return name, bytes.TrimSpace(in[:end]), in[end:]
}

// quoted parses a quoted string after its opening quote, and removes backslashes.
func quoted(in []byte) (value, rest []byte) {
	for i := 0; i < len(in); i++ {
		switch {
		case in[i] == '"':
			return value, in[i+1:]
		case in[i] == '\\' && i+1 < len(in):
			i++
		}
		value = append(value, in[i])
	}
	return value, nil
}

// indexAny returns the index of the first of the characters, or the length of in.
func indexAny(in []byte, chars string) int {
	if i := bytes.IndexAny(in, chars); i >= 0 {
		return i
	}
	return len(in)
}
