package warc

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"kumo/internal/base/field"
)

// SURT returns the index key of a URL.
func SURT(url string) string { return string(appendSURT(nil, url)) }

// appendSURT appends the key that pywb, cdxj-indexer and jwarc use for a URL. The scheme is dropped and the host labels
// are reversed, so that a sorted index keeps a domain together: https://www.Example.org:8443/A/?b=2&a=1 becomes
// org,example:8443)/a?a=1&b=2.
//
// These readers use the Internet Archive's canonicalizer. It ignores a leading www, case, default ports, user names,
// escapes, empty path segments, the order of parameters, a final slash and the session ids of a few servers.
func appendSURT(dst []byte, url string) []byte {
	if !utf8.ValidString(url) {
		url = string([]rune(url)) // as in the JSON of the line: invalid UTF-8 is replaced
	}
	host, port, path, query, ok := cutURL(url)
	if !ok {
		return field.Token(dst, strings.ToLower(url))
	}
	dst = appendHost(dst, host)
	if port != "" {
		dst = field.Token(append(dst, ':'), port)
	}
	dst = append(append(dst, ')'), keyPath(path)...)
	if query = keyQuery(query); query != "" {
		dst = append(append(dst, '?'), query...)
	}
	return dst
}

// cutURL splits a URL and drops its fragment. port is "" if it is the default port of the scheme.
func cutURL(url string) (host, port, path, query string, ok bool) {
	scheme, rest, ok := strings.Cut(url, "://")
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	if host, port = splitPort(rest[:end]); port == defaultPorts[strings.ToLower(scheme)] {
		port = ""
	}
	path, query, _ = strings.Cut(rest[end:], "?")
	return host, port, path, query, ok
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// splitPort splits an authority and drops the user name.
func splitPort(authority string) (host, port string) {
	host = authority[strings.LastIndexByte(authority, '@')+1:]
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.Contains(host[i:], "]") {
		return host[:i], host[i+1:]
	}
	return host, ""
}

// appendHost appends the labels in reverse order, without a leading www.
func appendHost(dst []byte, host string) []byte {
	host = strings.ReplaceAll(unescapeAll(strings.Trim(host, "[]")), "..", ".")
	host = escapeOnce(strings.ToLower(strings.Trim(host, ".")))
	if first, rest, ok := strings.Cut(host, "."); ok && isWWW(first) {
		host = rest
	}
	for {
		i := strings.LastIndexByte(host, '.')
		dst = append(dst, host[i+1:]...)
		if i < 0 {
			return dst
		}
		dst = append(dst, ',')
		host = host[:i]
	}
}

// isWWW reports whether label is www, www2 and so on.
func isWWW(label string) bool {
	digits, ok := strings.CutPrefix(label, "www")
	return ok && strings.Trim(digits, "0123456789") == ""
}

// keyPath returns a path in lower case, without unnecessary escapes, dot segments, empty segments, session id and final
// slash.
func keyPath(path string) string {
	path = unescapeAll(path)
	if path == "" || strings.Contains(path, "//") || strings.Contains(path, "/.") {
		path = cleanPath(path)
	}
	path = strings.ToLower(escapeOnce(path))
	if strings.Contains(path, ".aspx") {
		for _, id := range pathSessions {
			path = id.ReplaceAllString(path, "$1$2")
		}
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

// cleanPath removes dot segments and empty segments.
func cleanPath(path string) string {
	var segments []string
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		switch {
		case segment == ".":
		case segment == ".." && len(segments) > 0: // an empty segment counts here
			segments = segments[:len(segments)-1]
		default:
			segments = append(segments, segment)
		}
	}
	segments = slices.DeleteFunc(segments, func(s string) bool { return s == "" })
	return "/" + strings.Join(segments, "/")
}

// keyQuery returns a query in lower case, without unnecessary escapes and session ids, and with sorted parameters.
func keyQuery(query string) string {
	query = strings.ToLower(escapeOnce(unescapeAll(query)))
	if strings.Contains(query, "id=") || strings.Contains(query, "aspsessionid") {
		for _, id := range querySessions {
			query = id.ReplaceAllString(query, "$1$2")
		}
	}
	return sortParameters(query)
}

// Session ids that the canonicalizer drops, in lower case.
var (
	pathSessions = []*regexp.Regexp{
		regexp.MustCompile(`^(.*/)(?:\((?:[a-z]\([0-9a-z]{24}\))+\)/)([^?]+\.aspx.*)$`),
		regexp.MustCompile(`^(.*/)(?:\([0-9a-z]{24}\)/)([^?]+\.aspx.*)$`),
	}
	querySessions = []*regexp.Regexp{
		regexp.MustCompile(`^(.*)jsessionid=[0-9a-z]{32}(?:&(.*))?$`),
		regexp.MustCompile(`^(.*)phpsessid=[0-9a-z]{32}(?:&(.*))?$`),
		regexp.MustCompile(`^(.*)sid=[0-9a-z]{32}(?:&(.*))?$`),
		regexp.MustCompile(`^(.*)aspsessionid[a-z]{8}=[a-z]{24}(?:&(.*))?$`),
		regexp.MustCompile(`^(.*)cfid=[^&]+&cftoken=[^&]+(?:&(.*))?$`),
	}
)

// sortParameters sorts the parameters of a query by name, then value.
func sortParameters(query string) string {
	if !strings.Contains(query, "&") {
		return query
	}
	params := strings.Split(query, "&")
	slices.SortFunc(params, func(a, b string) int {
		nameA, valueA, _ := strings.Cut(a, "=")
		nameB, valueB, _ := strings.Cut(b, "=")
		return cmp.Or(strings.Compare(nameA, nameB), strings.Compare(valueA, valueB), strings.Compare(a, b))
	})
	return strings.Join(params, "&")
}

// unescapeAll decodes percent escapes repeatedly: "%2541" becomes "A".
func unescapeAll(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		out = append(out, s[i])
		for n := len(out); n >= 3 && out[n-3] == '%'; n = len(out) { // the byte may complete another escape
			if _, err := hex.Decode(out[n-3:n-2], out[n-2:]); err != nil {
				break
			}
			out = out[:n-2]
		}
	}
	return string(out)
}

// escapeOnce escapes white space, control characters, "#", "%" and non-ASCII characters.
func escapeOnce(s string) string {
	if !strings.ContainsFunc(s, isEscaped) {
		return s
	}
	var out []byte
	for _, c := range []byte(s) {
		if isEscaped(rune(c)) {
			out = fmt.Appendf(out, "%%%02X", c)
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

func isEscaped(c rune) bool { return c <= ' ' || c >= 0x7F || c == '#' || c == '%' }
