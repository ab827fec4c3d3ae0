package weburl

import (
	"fmt"
	"slices"
	"strings"
)

// Rules rewrite canonical URLs further, on the user's wish. They go by custom and not by the rules of URLs: each takes
// out what on most sites makes no difference to the page, and on some does. Rules are a set; the zero value changes
// nothing.
type Rules uint8

// The rules.
const (
	DropTracking Rules = 1 << iota // query parameters that say where a visitor came from are dropped
	DropSession                    // session ids in query and path are dropped
	// query parameters are put in the order of their names, those of one name stay in theirs
	SortQuery
	DropIndex // "index.html" and the like at the path's end are dropped
	DropWWW   // "www." at the host's beginning is dropped
)

var ruleNames = [...]string{"tracking", "session", "sort", "index", "www"}

// ParseRules reads a list of rules, separated by commas: tracking, session, sort, index, www. None is "none" or an
// empty list.
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

// Names are the names of the rules in the set.
func (r Rules) Names() (names []string) {
	for i, n := range ruleNames {
		if r&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

// String lists the rules as [ParseRules] reads them.
func (r Rules) String() string {
	if r == 0 {
		return "none"
	}
	return strings.Join(r.Names(), ",")
}

// Apply rewrites an http or https URL that is in canonical form; others it leaves alone. The result is in canonical
// form, too, and applying the rules again does not change it. It allocates only where there is something to change.
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

// hostname drops "www.", as far as that is not part of the registered domain.
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
