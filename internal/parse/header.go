package parse

import (
	"bytes"
	"net/http"

	"kumo/internal/page"
)

// headers takes the links of the response's header fields, which are relative to its own URL.
func (p *Parser) headers(resp *page.Response) {
	if isRedirect(resp.Status) {
		if to := resp.Header.Get("Location"); to != "" {
			p.links.add(p.self, []byte(to), page.Redirect, nil)
			p.links.redirects = true
		}
	}
	if refresh := resp.Header.Get("Refresh"); refresh != "" {
		if _, ref, ok := parseRefresh([]byte(refresh)); ok && len(ref) > 0 {
			p.links.add(p.self, ref, page.Refresh, nil)
		}
	}
	for _, field := range resp.Header.Values("Link") {
		p.linkField([]byte(field))
	}
	p.links.touched = false
}

// isRedirect reports whether a Location field of the answer is to be followed.
func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// linkField takes the links of a Link field (RFC 8288, section 3 and appendix B.2). One with an anchor says something of
// another resource; it is a link, but not this page's canonical URL.
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
		var rel []byte
		var anchored bool
		rel, anchored, in = linkParams(in[end+1:])
		kind, ok := relKind(rel, page.Header)
		if kind == page.Canonical && anchored {
			kind = page.Header
		}
		if ok {
			p.links.add(p.self, ref, kind, rel)
		}
	}
}

// linkParams reads the parameters of one link and returns what follows the comma that ends it. The first rel counts.
func linkParams(in []byte) (rel []byte, anchored bool, rest []byte) {
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
			rel, seen = value, true
		case equalFold(name, "anchor"):
			anchored = true
		}
	}
	if i := bytes.IndexByte(in, ','); i >= 0 {
		return rel, anchored, in[i+1:]
	}
	return rel, anchored, nil
}

// linkParam reads `name`, `name=token` or `name="quoted"`.
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

// quoted reads a quoted string behind its opening quote, taking backslashes out.
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

// indexAny is where the first of the characters stands, or the length of in.
func indexAny(in []byte, chars string) int {
	if i := bytes.IndexAny(in, chars); i >= 0 {
		return i
	}
	return len(in)
}
