// Package weburl parses, resolves and normalizes URLs as browsers do, and decides whether a URL is in scope.
//
// It also groups URLs by host and by registered domain.
//
// Parsing follows the WHATWG URL Standard for http, https and ftp. The standard's state machine is written here as one
// function per component (scheme, authority, host, path, query). Each function appends its component to a buffer. So
// the same code parses, resolves and writes the canonical form, without an intermediate representation. Other schemes
// are only recognized: the text after the colon is not parsed. This includes file URLs, which a crawl does not use.
//
// Two things differ from the standard. URLs are bounded in length. Bytes that are not UTF-8 are percent-encoded as they
// are, not replaced, since the server that sent them will recognize them.
//
// docs/decisions/url.md compares the package with libraries.
package weburl

import "strings"

// MaxLength is the maximum length of a URL in bytes, as parsed and in canonical form.
const MaxLength = 8 << 10

// A URL is an absolute URL. It is a small comparable value. Two URLs are equal if their texts are equal. The zero URL
// means that there is no URL.
type URL struct {
	href string
	at   parts
}

// parts are offsets into the serialized URL:
//
//	https://user:pw@example.com:8080/path?query#fragment
//	     |          |          |    |    |     |
//	     scheme     host       |    path |     queryEnd
//	                           hostEnd   pathEnd
//
// Each is the end of a component, and usually the start of the next. MaxLength allows 16 bits.
type parts struct{ scheme, host, hostEnd, path, pathEnd, queryEnd uint16 }

// String returns the URL as serialized by the standard (its href).
func (u URL) String() string { return u.href }

// IsZero reports whether u is the zero URL.
func (u URL) IsZero() bool { return u.href == "" }

// Scheme returns the scheme in lower case, without the colon: "https".
func (u URL) Scheme() string { return u.href[:u.at.scheme] }

// Hostname returns the host without the port: "example.com", "192.0.2.1", "[2001:db8::1]". It is empty for schemes
// other than http, https and ftp.
func (u URL) Hostname() string { return u.href[u.at.host:u.at.hostEnd] }

// Port returns the port in digits; "" if it is the default port of the scheme.
func (u URL) Port() string { return strings.TrimPrefix(u.href[u.at.hostEnd:u.at.path], ":") }

// Host returns the host key, which identifies a host in a crawl: the hostname, with ":port" unless it is the default.
// "example.com", "example.com:8080".
func (u URL) Host() string { return u.href[u.at.host:u.at.path] }

// Origin returns the part of a URL to which a robots.txt applies: "https://example.com", "http://example.com:8080". It
// is empty for schemes other than http, https and ftp.
func (u URL) Origin() string {
	if !u.hierarchical() {
		return ""
	}
	if !u.HasUser() {
		return u.href[:u.at.path]
	}
	return u.Scheme() + "://" + u.Host()
}

// Path returns the path, percent-encoded as in the URL. It begins with a slash. For other schemes it is everything
// after the colon.
func (u URL) Path() string { return u.href[u.at.path:u.at.pathEnd] }

// Query returns the query without the question mark.
func (u URL) Query() string { return strings.TrimPrefix(u.href[u.at.pathEnd:u.at.queryEnd], "?") }

// RequestURI returns the path and, after a question mark, the query.
func (u URL) RequestURI() string { return u.href[u.at.path:u.at.queryEnd] }

// HasUser reports whether the URL has a user name or password.
func (u URL) HasUser() bool { return u.hierarchical() && u.at.host > u.at.scheme+uint16(len("://")) }

// hierarchical reports whether the URL is an http, https or ftp URL, whose components are all parsed.
func (u URL) hierarchical() bool { return u.at.hostEnd > u.at.host }

// IsHTTP reports whether a crawl can fetch the URL: the scheme is http or https, and it has a host.
func (u URL) IsHTTP() bool { return u.hierarchical() && u.href[0] == 'h' }
