package warc

import (
	"cmp"
	"slices"
	"strings"

	"kumo/internal/store/field"
)

// SURT is the key under which an index has a URL.
func SURT(url string) string { return string(appendSURT(nil, url)) }

// appendSURT writes the key under which a URL is found in an index: scheme dropped, host labels turned round, so that a
// sorted index has a domain's pages together: https://www.Example.org:8443/A/?b=2&a=1 is org,example:8443)/a?a=1&b=2.
// It follows the Internet Archive's canonicaliser (www, case, default ports, the order of parameters and a path's last
// slash do not matter) except that session ids stay.
func appendSURT(dst []byte, url string) []byte {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return field.Token(dst, strings.ToLower(url))
	}
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	host, port := splitPort(rest[:end])
	dst = appendHost(dst, strings.ToLower(host))
	if port != "" && port != defaultPorts[strings.ToLower(scheme)] {
		dst = field.Token(append(dst, ':'), port)
	}
	path, query, _ := strings.Cut(rest[end:], "?")
	dst = append(dst, ')')
	dst = appendPath(dst, strings.ToLower(path))
	return appendQuery(dst, strings.ToLower(query))
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// splitPort takes an authority apart; what comes before an @ is dropped.
func splitPort(authority string) (host, port string) {
	host = authority[strings.LastIndexByte(authority, '@')+1:]
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.Contains(host[i:], "]") {
		return host[:i], host[i+1:]
	}
	return host, ""
}

// appendHost writes the labels from the last to the first, without a leading www.
func appendHost(dst []byte, host string) []byte {
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if first, rest, ok := strings.Cut(host, "."); ok && isWWW(first) {
		host = rest
	}
	for {
		i := strings.LastIndexByte(host, '.')
		dst = field.Token(dst, host[i+1:])
		if i < 0 {
			return dst
		}
		dst = append(dst, ',')
		host = host[:i]
	}
}

// isWWW reports whether label is www, www2, ...
func isWWW(label string) bool {
	digits, ok := strings.CutPrefix(label, "www")
	return ok && strings.Trim(digits, "0123456789") == ""
}

// appendPath writes the segments that are not empty, or "/" when there are none.
func appendPath(dst []byte, path string) []byte {
	empty := true
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" {
			dst = field.Token(append(dst, '/'), segment)
			empty = false
		}
	}
	if empty {
		dst = append(dst, '/')
	}
	return dst
}

// appendQuery writes the parameters sorted by name, then value.
func appendQuery(dst []byte, query string) []byte {
	if query == "" {
		return dst
	}
	params := strings.Split(query, "&")
	slices.SortFunc(params, func(a, b string) int {
		nameA, valueA, _ := strings.Cut(a, "=")
		nameB, valueB, _ := strings.Cut(b, "=")
		return cmp.Or(strings.Compare(nameA, nameB), strings.Compare(valueA, valueB), strings.Compare(a, b))
	})
	return field.Token(append(dst, '?'), strings.Join(params, "&"))
}
