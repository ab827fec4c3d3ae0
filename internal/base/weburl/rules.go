package weburl

import (
	"fmt"
	"slices"
	"strings"
)

// Rules rewrite canonical URLs further if the user wants it. They follow conventions rather than standards: on most
// sites the parts that they remove do not affect the page, but on some they do. Rules is a set; the zero value changes
// nothing.
type Rules uint8

// The rules.
const (
	DropTracking Rules = 1 << iota // drop query parameters that record where a visitor came from
	DropSession                    // drop session ids in query and path
	// sort query parameters by name, stably
	SortQuery
	DropIndex // drop "index.html" and the like at the end of the path
	DropWWW   // drop "www." at the beginning of the host
)

var ruleNames = [...]string{"tracking", "session", "sort", "index", "www"}

// ParseRules parses a comma-separated list of rules: tracking, session, sort, index, www. "none" and the empty list
// mean no rules.
func ParseRules(list string) (Rules, error) {
	var rules Rules
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if i := slices.Index(ruleNames[:], name); i >= 0 {
			rules |= 1 << i
		} else if name != "" && name != "none" {
			return 0, fmt.Errorf("rule %q: not one of %s, none", name, strings.Join(ruleNames[:], ", "))
		}
	}
	return rules, nil
}

// Names returns the names of the rules in the set.
func (r Rules) Names() (names []string) {
	for i, n := range ruleNames {
		if r&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

// String returns the rules in the format of [ParseRules].
func (r Rules) String() string {
	if r == 0 {
		return "none"
	}
	return strings.Join(r.Names(), ",")
}

// Apply rewrites a canonical http or https URL; other URLs are returned unchanged. The result is canonical, and
// applying the rules again does not change it. Apply allocates only if something changes.
func (r Rules) Apply(u URL) URL {
	if r == 0 || !u.IsHTTP() {
		return u
	}
	room := rooms.Get().(*buffers)
	defer rooms.Put(room)
	p := parser{dst: room.out[:0]}
	p.scheme(u.Scheme())
	p.at.host = p.pos()
	p.dst = append(p.dst, r.hostname(u.Hostname())...)
	p.at.hostEnd = p.pos()
	p.dst = append(p.dst, u.href[u.at.hostEnd:u.at.path]...)
	p.at.path = p.pos()
	p.dst = r.appendPath(p.dst, u.Path())
	p.at.pathEnd = p.pos()
	p.dst = r.appendQuery(p.dst, u.Query(), room.in[:0])
	p.at.queryEnd = p.pos()
	return p.url(u.href)
}

// hostname drops "www." unless it is a part of the registered domain.
func (r Rules) hostname(name string) string {
	rest := name
	for r&DropWWW != 0 && strings.HasPrefix(rest, "www.") {
		rest = rest[len("www."):]
	}
	if len(rest) == len(name) {
		return name
	}
	dot := len(name) - len(strings.TrimSuffix(name, "."))
	return name[len(name)-max(len(rest), len(Domain(name))+dot):]
}
