package maintext

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// hasPosts reports whether an element begins with comments, rather than a text about comments. Elements may be nested, so
// it reads a part of one.
func hasPosts(d *document, i int) bool {
	for j := i + 1; j < min(d.tree.End(i), i+maxNear); j++ {
		if d.flags[j]&post != 0 && d.names[j]&commentName != 0 {
			return true
		}
	}
	return false
}

// linksWithin reports whether an element is links to parts of the page. Otherwise it may be the contents of a book.
func linksWithin(d *document, i int) bool {
	s := d.between(i)
	if s.links == 0 || 2*s.link < s.text {
		return false
	}
	for n := range d.near(d.tree.Node(i)) {
		if href := attr(n, "href"); n.DataAtom == atom.A && href != "" && !strings.HasPrefix(href, "#") {
			return false
		}
	}
	return true
}

// headsPart reports whether a header is the heading of a part of the text: h2 to h6, little else, and no h1.
func headsPart(d *document, i int) bool {
	is := false
	for j := i + 1; j < min(d.tree.End(i), i+maxNear); j++ {
		n := d.tree.Node(j)
		if n.DataAtom == atom.H1 {
			return false
		}
		is = is || isHeading(n.DataAtom) && d.flags[j]&gone == 0 && 2*d.between(j).text >= d.between(i).text
	}
	return is
}

// comments returns the text of the comments, without names, dates, buttons and forms.
func (d *document) comments() string {
	var roots []int
	for i := 0; i < d.tree.Nodes(); i++ {
		if d.flags[i]&gone != 0 {
			continue
		}
		n := d.tree.Node(i)
		if n.Type == html.ElementNode && d.flags[i]&aside != 0 && d.names[i]&(commentName|reviewName) != 0 &&
			n.DataAtom != atom.Form && n.DataAtom != atom.A {
			roots = append(roots, i)
			i = d.tree.End(i) - 1
		}
	}
	if len(roots) == 0 {
		return ""
	}
	for _, i := range roots {
		unmarkComments(d, i)
	}
	d.sumPassages()
	bodies := bodiesOf(d, roots)
	if len(bodies) == 0 {
		bodies = roots
	}
	found := d.found
	text := d.write(bodies, false, false, nil)
	d.found = found
	return text
}

// unmarkComments makes an aside text, but not the menus, lines about a comment and forms in it.
func unmarkComments(d *document, root int) {
	for i := root; i < d.tree.End(root); i++ {
		d.flags[i] &^= aside | dropped
	}
	for i := root + 1; i < d.tree.End(root); i++ {
		n := d.tree.Node(i)
		if n.Type != html.ElementNode {
			continue
		}
		is := d.names[i]
		if styleOf(n.DataAtom) == boiler || n.DataAtom == atom.Time ||
			is&(commentName|reviewName) == 0 && is&(metaName|asideName) != 0 {
			end := d.tree.End(i)
			for ; i < end; i++ {
				d.flags[i] |= aside
			}
			i--
		}
	}
}

// threadRoots returns the bodies of the posts in a part of the page, and the texts between headline and first post. It
// returns nil if the posts are not most of the part.
func threadRoots(d *document, scope int) []int {
	var posts []int
	good := int32(0)
	for i := scope; i < d.tree.End(scope); i++ {
		if d.skips(i) || d.flags[i]&post == 0 || d.between(i).text == 0 || d.posts[attr(d.tree.Node(i), "class")] < 2 {
			continue
		}
		posts = append(posts, i)
		good += d.goodOf(i)
		i = d.tree.End(i) - 1
	}
	if len(posts) < 2 || 3*good < 2*d.goodOf(scope) {
		return nil
	}
	var roots []int
	if headline := headlineBefore(d, posts[0]); headline > 0 {
		for i := d.tree.End(headline); i < posts[0]; i++ {
			if end := d.tree.End(i); end <= posts[0] && !d.skips(i) {
				if d.goodOf(i) > 0 {
					roots = append(roots, i)
				}
				i = end - 1
			}
		}
	}
	if bodies := bodiesOf(d, posts); bodies != nil {
		posts = bodies
	}
	return append(roots, posts...)
}

// headlineBefore returns the last h1 or h2 before a node, 0 if there is none.
func headlineBefore(d *document, i int) int {
	for i--; i > 0; i-- {
		if n := d.tree.Node(i); (n.DataAtom == atom.H1 || n.DataAtom == atom.H2) && !d.skips(i) {
			return i
		}
	}
	return 0
}

// bodiesOf returns the bodies of posts or comments: the elements of the class that has nearly all good passages of some
// elements, and the least other text. Names, ranks and dates of posters are outside of them.
func bodiesOf(d *document, all []int) []int {
	type class struct {
		good, text int32
		nodes      []int
	}
	classes := map[string]*class{}
	good := int32(0)
	for _, root := range all {
		good += d.goodOf(root)
		for i := root; i < d.tree.End(root); i++ {
			n := d.tree.Node(i)
			name := attr(n, "class")
			if name == "" || d.skips(i) || styleOf(n.DataAtom) == inline {
				continue
			}
			c := classes[name]
			if c == nil {
				c = &class{}
				classes[name] = c
			}
			if last := len(c.nodes) - 1; last >= 0 && i < d.tree.End(c.nodes[last]) {
				continue // nested
			}
			c.nodes = append(c.nodes, i)
			c.good += d.goodOf(i)
			c.text += d.between(i).text
		}
	}
	var best *class
	for _, c := range classes {
		if 20*c.good < 19*good || 4*len(c.nodes) < 3*len(all) {
			continue
		}
		if best == nil || c.text < best.text || c.text == best.text && c.nodes[0] > best.nodes[0] {
			best = c
		}
	}
	if best == nil {
		return nil
	}
	return best.nodes
}
