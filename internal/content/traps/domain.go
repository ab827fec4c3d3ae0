package traps

import (
	"iter"
	"strings"

	"kumo/internal/base/weburl"
)

// What names of a domain are kept as they are; others of their place are {word}. So a site that makes up names has not
// more patterns than one that does not.
var maxNames = [...]int{16, 128, 8, 4} // hosts, then directories by their depth; below these none

// A domain is what is known of a registered domain.
type domain struct {
	name  string
	root  node
	nodes int // below the root
	spare []node
	hosts hosts // at any port: that of the domain without one has them
	areas areas
}

// newNode is a place that is not in the tree yet. None is ever taken out of it, so that they are made by the dozen.
func (dom *domain) newNode(name string) *node {
	if len(dom.spare) == 0 {
		dom.spare = make([]node, min(max(dom.nodes/4, 2), 32))
	}
	n := &dom.spare[0]
	n.name, dom.spare = name, dom.spare[1:]
	dom.nodes++
	return n
}

// A node is a place in the tree of a domain's patterns: a host, a directory, a last segment, a query's names. Its
// counts are those of all below it; budget is its own where it is the end of URLs.
type node struct {
	parent      *node // nil: it is the domain's
	name        string
	first, next *node            // of its children; of its parent's
	index       map[string]*node // its children, where they are many
	children    int
	names       int // of children that are names

	tried, fresh uint32 // answers that were judged, and those that were new
	branches     uint32 // children below which any was judged
	productive   uint32 // of these, those below which one was new
	end          *budget
	budget       budget // end's
}

// fewChildren are so many that they are looked through: most places have fewer, and a map takes memory for each.
const fewChildren = 8

func (n *node) child(name string) *node {
	if n.index != nil {
		return n.index[name]
	}
	c := n.first
	for c != nil && c.name != name {
		c = c.next
	}
	return c
}

func (n *node) add(c *node) {
	c.parent, c.next = n, n.first
	n.first = c
	if n.children++; n.index != nil {
		n.index[c.name] = c
	} else if n.children > fewChildren {
		n.index = map[string]*node{}
		for c := range n.all() {
			n.index[c.name] = c
		}
	}
}

// all goes through a place's children.
func (n *node) all() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for c := n.first; c != nil && yield(c); c = c.next {
		}
	}
}

// setEnd makes the place the end of URLs.
func (n *node) setEnd(b budget) {
	n.budget = b
	n.end = &n.budget
}

// A walk goes down a domain's tree along a URL.
type walk struct {
	*scratch
	domain   *domain
	limit    int // nodes that the domain may have
	make     bool
	exact    bool // to where the names lead, whatever is known of what lies there
	loops    bool
	hopeless bool // hardly anything below the directory where it is was new
	inRest   bool // in the rest of such a directory
}

// step goes to a child, which is made if it is to be; false if there is none.
func (w *walk) step(name string, plain bool, most int) bool {
	at := w.path[len(w.path)-1]
	child := at.child(name)
	w.updateHopeless(at)
	if w.hopeless && !w.exact && w.mergesIntoRest(child, plain, at.names < most) {
		name, plain, w.inRest = rest, false, true
		child = at.child(name)
	}
	if child == nil && plain && (at.names >= most || w.domain.nodes >= w.limit) {
		name, plain = word, false
		child = at.child(name)
	}
	if child == nil {
		if !w.make {
			return false
		}
		if plain { // others are texts that are kept
			name = strings.Clone(name)
		}
		child = w.domain.newNode(name)
		at.add(child)
		if plain {
			at.names++
		}
	}
	w.path, w.names = append(w.path, child), append(w.names, name)
	return true
}

// mergesIntoRest reports whether a child of a place in vain has no budget of its own: it is a name that brought nothing, or it is
// new. A new name at a host's root has one, as long as there is room.
func (w *walk) mergesIntoRest(child *node, plain, room bool) bool {
	if child == nil {
		return !plain || !room || len(w.path) != 2
	}
	return plain && child.tried > 0 && child.fresh == 0
}

// updateHopeless says whether it is in vain to tell patterns below a place apart: a place with many branches of which hardly any
// has brought anything, or the nearest directory of which enough is known. Of whole hosts' pages nothing is said.
func (w *walk) updateHopeless(at *node) {
	switch {
	case len(w.path) >= 2 && at.branches >= hopelessAfter && at.productive <= at.branches/hopelessShare:
		w.hopeless = true
	case len(w.path) <= 2:
	case at.tried >= hopelessAfter:
		w.hopeless = at.fresh <= at.tried/hopelessShare
	case at.tried >= suspectAfter && at.fresh > at.tried/suspectShare:
		w.hopeless = false
	}
}

// last is where the walk has come to.
func (w *walk) last() *node { return w.path[len(w.path)-1] }

// follow goes from the root to where a URL ends; false if that is not there.
func (w *walk) follow(u weburl.URL) bool {
	w.path, w.names = append(w.path[:0], &w.domain.root), w.names[:0]
	name, _, _ := strings.Cut(w.domain.name, ":") // without a port
	if strings.HasPrefix(w.domain.name, "[") {
		name = u.Hostname()
	}
	sub := strings.TrimSuffix(strings.TrimSuffix(u.Hostname(), name), ".")
	host, plain := w.classify(sub)
	if !w.step(host, plain && sub != "", maxNames[0]) {
		return false
	}
	segments := w.splitPath(u.Path())
	for i, s := range segments {
		name, plain := w.classify(s)
		most := 0
		if i+1 < len(maxNames) {
			most = maxNames[i+1]
		}
		switch last := i == len(segments)-1; {
		case s == loop || s == endless:
			name, plain = s, false
		case last && plain && s != "": // names of pages are many; what they end with tells kinds apart
			name, plain = w.classifyPage(s), false
		}
		if !w.step(name, plain && s != "", most) {
			return false
		}
		if w.inRest {
			return true
		}
	}
	if query := u.Query(); query != "" {
		return w.step(w.query(query), false, 0)
	}
	return true
}

// splitPath cuts a path into its segments, of which the last is "" where it ends with a slash. What goes round or has no
// end is cut short.
func (w *walk) splitPath(path string) []string {
	w.segments = w.segments[:0]
	for s := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		w.segments = append(w.segments, s)
	}
	all := w.segments
	for i := range all {
		if once, round := findCycle(all[:i+1]); round && all[i] != "" {
			w.loops = true
			return append(all[:once], loop)
		}
		if i == maxSegments {
			w.loops = true
			return append(all[:i], endless)
		}
	}
	return all
}

// classifyPage is the class of a page's name, with what it ends with.
func (s *scratch) classifyPage(name string) string {
	s.buf = append(append(s.buf[:0], word...), extension(name)...)
	return s.text(s.buf)
}

func extension(name string) string {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && len(name)-dot <= 6 {
		return name[dot:]
	}
	return ""
}

// pattern is what the walk went along, as a text: host, path and the query's names.
func (w *walk) pattern() string {
	var b strings.Builder
	if b.WriteString(w.names[0]); b.Len() > 0 {
		b.WriteByte('.')
	}
	b.WriteString(w.domain.name)
	for _, name := range w.names[1:] {
		if !strings.HasPrefix(name, "?") {
			b.WriteByte('/')
		}
		b.WriteString(name)
	}
	return b.String()
}
