package robots

import (
	"slices"
	"strings"
)

// A CleanParam is a Clean-param line, an extension by Yandex: query parameters that do not affect the page, for some
// paths. URLs that differ only in them are the same page.
type CleanParam struct {
	Params []string // names as in queries; case-sensitive
	Path   string   // as written, "/" by default; matches like a Disallow pattern

	pattern string // Path in normal form
}

// maxCleanParams limits the parameter names of a file. Each is compared with each name in a query.
const maxCleanParams = 1000

// parseCleanParam parses "ref&sid /some/path". It keeps at most most names.
func parseCleanParam(value string, most int) (c CleanParam, ok bool) {
	fields := strings.Fields(value)
	if len(fields) == 0 {
		return CleanParam{}, false
	}
	names, path := strings.Clone(fields[0]), "/"
	if len(fields) > 1 {
		path = strings.Clone(fields[1])
	}
	if path[0] != '/' && path[0] != '*' {
		return CleanParam{}, false
	}
	for name := range strings.SplitSeq(names, "&") {
		if name != "" && len(c.Params) < most {
			c.Params = append(c.Params, name)
		}
	}
	c.Path, c.pattern = path, path
	if !isNormal(path, true) {
		c.pattern = string(appendNormal(nil, path, true))
	}
	return c, len(c.Params) > 0
}

// CleanParams returns the Clean-param lines, in order. They apply to all agents. The caller must not modify them.
func (r *Rules) CleanParams() []CleanParam { return r.clean }

// Clean returns a URL without the parameters in Clean-param lines; the same URL if it has none. The URL may be absolute
// or a path with query, and should be canonical. Only the part before the "?" selects the lines, so a clean URL stays
// unchanged.
func (r *Rules) Clean(url string) string {
	if len(r.clean) == 0 {
		return url
	}
	end := len(url)
	if at := strings.IndexByte(url, '#'); at >= 0 {
		end = at
	}
	head, query, ok := strings.Cut(url[:end], "?")
	if !ok {
		return url
	}
	clean := r.cleanQuery(head, query)
	switch {
	case len(clean) == len(query):
		return url
	case clean == "":
		return head + url[end:]
	}
	return head + "?" + clean + url[end:]
}

// cleanQuery returns the query of a URL without listed parameters. head is the rest of the URL.
func (r *Rules) cleanQuery(head, query string) string {
	lines := r.cleanParamsFor(head)
	if len(lines) == 0 {
		return query
	}
	params := strings.Split(query, "&")
	return strings.Join(slices.DeleteFunc(params, func(p string) bool { return isListed(p, lines) }), "&")
}

// cleanParamsFor returns the lines that apply to a URL without query.
func (r *Rules) cleanParamsFor(url string) (lines []*CleanParam) {
	target := normalTarget(Target(url))
	for i := range r.clean {
		if matches(r.clean[i].pattern, target) {
			lines = append(lines, &r.clean[i])
		}
	}
	return lines
}

func isListed(param string, lines []*CleanParam) bool {
	name, _, _ := strings.Cut(param, "=")
	return slices.ContainsFunc(lines, func(c *CleanParam) bool { return slices.Contains(c.Params, name) })
}
