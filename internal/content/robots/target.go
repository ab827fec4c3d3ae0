package robots

import "strings"

// Target returns the part of a URL to which rules apply: its path and query, "/" if it has none. The URL need not be
// canonical. It is not changed, so the caller must escape it.
func Target(url string) string {
	url, _, _ = strings.Cut(url, "#")
	url = afterScheme(url)
	start := strings.IndexAny(url, "/?;")
	switch {
	case start < 0:
		return "/"
	case url[start] != '/':
		return "/" + url[start:]
	}
	return url[start:]
}

// afterScheme removes "scheme://" or "//". A "://" after the first "/", "?" or ";" belongs to the path or query.
func afterScheme(url string) string {
	url = strings.TrimPrefix(url, "//")
	if end := strings.Index(url, "://"); end >= 0 && !strings.ContainsAny(url[:end], "/?;") {
		return url[end+len("://"):]
	}
	return url
}
