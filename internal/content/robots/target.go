package robots

import "strings"

// Target is the part of a URL that rules speak of: its path and query, "/" if it has none. The URL need not be
// canonical; what is there is taken as it stands, so that escaping it is up to the caller.
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

// afterScheme cuts "scheme://" or "//" off. A "://" behind the first "/", "?" or ";" belongs to the path or query.
func afterScheme(url string) string {
	url = strings.TrimPrefix(url, "//")
	if end := strings.Index(url, "://"); end >= 0 && !strings.ContainsAny(url[:end], "/?;") {
		return url[end+len("://"):]
	}
	return url
}
