package maintext

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// descendants yields the nodes below root in document order. It is much cheaper than Node.Descendants, which recurses
// through an iterator for each node. The loop may change a node's attributes and text, but must not remove nodes.
func descendants(root *html.Node) iter.Seq[*html.Node] {
	return func(yield func(*html.Node) bool) {
		for n := root.FirstChild; n != nil && yield(n); {
			if n.FirstChild != nil {
				n = n.FirstChild
				continue
			}
			for n != root && n.NextSibling == nil {
				n = n.Parent
			}
			if n == root {
				return
			}
			n = n.NextSibling
		}
	}
}

// Elements may be nested, so that walks below each of them would take time depth × nodes.
const (
	maxNear   = 500 // nodes below one element
	maxVisits = 16  // nodes in all walks, as a multiple of the page's nodes
)

// near yields the first nodes below root, like descendants. All walks of a page together take time linear in the page:
// after that it yields nothing.
func (d *document) near(root *html.Node) iter.Seq[*html.Node] {
	return func(yield func(*html.Node) bool) {
		last := min(d.visits+maxNear, maxVisits*(d.tree.Nodes()+maxNear))
		for n := range descendants(root) {
			if d.visits >= last {
				return
			}
			d.visits++
			if !yield(n) {
				return
			}
		}
	}
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, key string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

// squeeze joins words with single spaces and drops soft hyphens.
func squeeze(s string) string {
	s = strings.TrimSpace(s)
	if isSqueezed(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	space := false // the last character was white space
	for i, begin := 0, 0; ; {
		// Copy the text up to white space or a soft hyphen at once.
		c, size := byte(' '), 0
		if i < len(s) {
			c, size = s[i], 1
		}
		isSpace, isHyphen := c == ' ' || c >= '\t' && c <= '\r', false
		if c == 0xC2 || c >= 0xE1 && c <= 0xE3 {
			r, n := utf8.DecodeRuneInString(s[i:])
			isSpace, isHyphen, size = unicode.IsSpace(r), r == '\u00AD', n
		}
		if !isSpace && !isHyphen {
			i += size
			continue
		}
		if begin < i {
			if space && b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(s[begin:i])
			space = false
		}
		space = space || isSpace
		if size == 0 {
			return b.String()
		}
		i += size
		begin = i
	}
}

// isSqueezed reports whether squeeze would change nothing. It decodes only runes whose first byte may begin white space
// or a soft hyphen. Most of a page's text needs no change.
func isSqueezed(s string) bool {
	before := byte(' ')
	for i := range len(s) {
		c := s[i]
		switch {
		case c == ' ' && before == ' ', c >= '\t' && c <= '\r':
			return false
		case c == 0xC2, c >= 0xE1 && c <= 0xE3:
			if r, _ := utf8.DecodeRuneInString(s[i:]); r == '\u00AD' || unicode.IsSpace(r) {
				return false
			}
		}
		before = c
	}
	return s == "" || before != ' '
}

// collapse squeezes a text to one line and truncates it at a rune near max bytes.
func collapse(s string, max int) string {
	s = squeeze(s)
	if len(s) <= max {
		return s
	}
	return strings.TrimSpace(strings.ToValidUTF8(s[:max], ""))
}
