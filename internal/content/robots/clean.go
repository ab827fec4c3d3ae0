package robots

import (
	"slices"
	"strings"
)

// A CleanParam is a Clean-param line, which Yandex reads: query parameters that say nothing of a page, on paths of a
// kind. URLs that differ in them only are one page.
type CleanParam struct {
	Params []string // names, as they stand in queries; letter case matters
	Path   string   // as written, "/" if none is given; it matches as a Disallow does

	pattern string // Path in normal form
}

// maxCleanParams bounds the names that are kept of a file. Each is compared with each of a query's.
const maxCleanParams = 1000

// parseCleanParam reads "ref&sid /some/path", of the names at most so many.
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

// CleanParams are the Clean-param lines, in order. They are meant for every agent. Do not change them.
func (r *Rules) CleanParams() []CleanParam { return r.clean }

// Clean gives a URL without the parameters that Clean-param lines call meaningless; the same URL when there are none.
// It may be absolute or a path with query, and should be in canonical form. Only what lies before the "?" decides which
// lines speak of it, so that a clean URL stays as it is.
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

// cleanQuery is the query of a URL, of which head is the rest, without meaningless parameters.
func (r *Rules) cleanQuery(head, query string) string {
	lines := r.cleanParamsFor(head)
	if len(lines) == 0 {
		return query
	}
	params := strings.Split(query, "&")
	return strings.Join(slices.DeleteFunc(params, func(p string) bool { return isListed(p, lines) }), "&")
}

// cleanParamsFor are the lines that speak of a URL without query.
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
