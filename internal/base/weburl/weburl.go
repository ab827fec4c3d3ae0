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

// MaxLength is the greatest length in bytes of a URL, in its own and in its canonical form.
const MaxLength = 8 << 10

// A URL is an absolute URL. It is a small comparable value; two are equal when they are written the same. The zero URL
// stands for none.
type URL struct {
	href string
	at   parts
}

// parts are offsets into the serialised URL:
//
//	https://user:pw@example.com:8080/path?query#fragment
//	     |          |          |    |    |     |
//	     scheme     host       |    path |     queryEnd
//	                           hostEnd   pathEnd
//
// Each is the end of one part and for the most part the start of the next. MaxLength keeps them small.
type parts struct{ scheme, host, hostEnd, path, pathEnd, queryEnd uint16 }

// String is the URL as the standard serialises it (its href).
func (u URL) String() string { return u.href }

// IsZero reports whether u is the zero URL.
func (u URL) IsZero() bool { return u.href == "" }

// Scheme is the scheme in lower case, without the colon: "https".
func (u URL) Scheme() string { return u.href[:u.at.scheme] }

// Hostname is the host without the port: "example.com", "192.0.2.1", "[2001:db8::1]". It is empty for other schemes
// than http, https and ftp.
func (u URL) Hostname() string { return u.href[u.at.host:u.at.hostEnd] }

// Port is the port in digits, or empty where it is the scheme's own.
func (u URL) Port() string { return strings.TrimPrefix(u.href[u.at.hostEnd:u.at.path], ":") }

// Host is the host key, by which a crawl counts hosts: the hostname, with ":port" unless it is the scheme's own.
// "example.com", "example.com:8080".
func (u URL) Host() string { return u.href[u.at.host:u.at.path] }

// Origin is what a robots.txt speaks for: "https://example.com", "http://example.com:8080". It is empty for other
// schemes.
func (u URL) Origin() string {
	if !u.hierarchical() {
		return ""
	}
	if !u.HasUser() {
		return u.href[:u.at.path]
	}
	return u.Scheme() + "://" + u.Host()
}

// Path is the path, percent-encoded as in the URL. It begins with a slash, but for other schemes, where it is all that
// follows the colon.
func (u URL) Path() string { return u.href[u.at.path:u.at.pathEnd] }

// Query is the query without the question mark.
func (u URL) Query() string { return strings.TrimPrefix(u.href[u.at.pathEnd:u.at.queryEnd], "?") }

// RequestURI is what a request for the URL names: the path and, after a question mark, the query.
func (u URL) RequestURI() string { return u.href[u.at.path:u.at.queryEnd] }

// HasUser reports whether the URL holds a user name or password.
func (u URL) HasUser() bool { return u.hierarchical() && u.at.host > u.at.scheme+uint16(len("://")) }

// hierarchical reports whether the URL is an http, https or ftp URL, which is to say whether all its parts are known.
func (u URL) hierarchical() bool { return u.at.hostEnd > u.at.host }

// IsHTTP reports whether the URL is one that a crawl can fetch: http or https, with a host.
func (u URL) IsHTTP() bool { return u.hierarchical() && u.href[0] == 'h' }
