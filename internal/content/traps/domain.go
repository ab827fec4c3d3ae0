package traps

import (
	"iter"
	"strings"

	"kumo/internal/base/weburl"
)

// maxNames limits the names that a node keeps as they are; all others become {word}. So a site with generated names has
// no more patterns than other sites.
var maxNames = [...]int{16, 128, 8, 4} // for hosts, then for directories by depth; 0 below

// A domain is the state of a registered domain.
type domain struct {
	name  string
	root  node
	nodes int // without the root
	spare []node
	hosts hosts // on any port: the domain without a port has them
	areas areas
}

// newNode returns a node that is not yet in the tree. Nodes are never removed, so they are allocated in batches.
func (dom *domain) newNode(name string) *node {
	if len(dom.spare) == 0 {
		dom.spare = make([]node, min(max(dom.nodes/4, 2), 32))
	}
	n := &dom.spare[0]
	n.name, dom.spare = name, dom.spare[1:]
	dom.nodes++
	return n
}

// A node is a part of a domain's patterns: a host, a directory, a last path segment, or the names in a query. Its
// counts include all nodes below it. Only a node at which URLs end has a budget.
type node struct {
	parent      *node // nil: the root
	name        string
	first, next *node            // first child; next child of the parent
	index       map[string]*node // the children by name, if there are many
	children    int
	names       int // number of children that are plain names

	tried, fresh uint32 // judged responses, and those with a new text
	branches     uint32 // children with any judged response below them
	productive   uint32 // branches with any new text below them
	end          *budget
	budget       budget // the budget of end

	admitted uint32 // pages from which a sample is compared
	alert    uint8  // further pages to compare, because of vain pages
}

// fewChildren is the number of children up to which they are searched linearly: most nodes have fewer, and a map for
// each would need memory.
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

// all yields the children of a node.
func (n *node) all() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for c := n.first; c != nil && yield(c); c = c.next {
		}
	}
}

// setEnd makes the node one at which URLs end.
func (n *node) setEnd(b budget) {
	n.budget = b
	n.end = &n.budget
}

// A walk follows a URL down the tree of a domain.
type walk struct {
	*scratch
	domain   *domain
	limit    int // maximum number of nodes of the domain
	make     bool
	exact    bool // follow the names exactly, even if the subtree is hopeless
	loops    bool
	hopeless bool // hardly any page below the current directory was new
	inRest   bool // the walk ended in the {rest} of such a directory
}

// step goes to a child. If there is none, it creates the child if make is set, and otherwise returns false.
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
		if plain { // other names are constants or interned
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

// mergesIntoRest reports whether a child of a hopeless node has no budget of its own: a name without any new page, or a
// new name. At a host's root, new names get a budget as long as there is room.
func (w *walk) mergesIntoRest(child *node, plain, room bool) bool {
	if child == nil {
		return !plain || !room || len(w.path) != 2
	}
	return plain && child.tried > 0 && child.fresh == 0
}

// updateHopeless decides whether patterns below a node are no longer distinguished: if hardly any of many branches had
// a new page, or by the nearest directory with enough pages. It never decides that about a whole host's pages.
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

// last returns the current node.
func (w *walk) last() *node { return w.path[len(w.path)-1] }

// follow goes from the root to the end of a URL; false if a node is missing.
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
		case last && plain && s != "": // there are many page names; their extensions distinguish kinds of pages
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

// splitPath splits a path into its segments. The last one is "" if the path ends with a slash. A cyclic or overlong
// path is shortened.
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

// classifyPage returns the class of a page's name, with its file name extension.
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

// pattern returns the path of the walk as text: host, directories and the query's names.
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
