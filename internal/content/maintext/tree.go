package maintext

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// clean removes invisible elements, modification dates and ruby annotations, marks the white space of pre, and turns
// layout tables into divs.
func clean(doc *html.Node) {
	var gone, tables []*html.Node
	for n := range descendants(doc) {
		switch {
		case isHidden(n):
			gone = append(gone, n)
		case n.DataAtom == atom.Pre:
			markSpace(n)
		case n.DataAtom == atom.Table && isLayout(n):
			tables = append(tables, n)
		}
	}
	for _, n := range gone {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
	for _, n := range tables {
		toDivs(n)
	}
}

func isHidden(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Template, atom.Dialog, atom.Rt, atom.Rp:
		return true
	case atom.A: // a heading's link to itself
		c := n.FirstChild
		return c != nil && c == n.LastChild && (c.Data == "¶" || c.Data == "#" || c.Data == "§")
	case atom.Meta: // so that a modification date is not used as publication date
		name := strings.ToLower(attr(n, "name") + attr(n, "property") + attr(n, "itemprop"))
		return strings.Contains(name, "modified") || strings.Contains(name, "updated")
	}
	return n.Type == html.CommentNode || has(n, "hidden")
}

// isLayout reports whether a table is used for layout rather than data: a cell contains headings, paragraphs or tables.
func isLayout(table *html.Node) bool {
	if role := attr(table, "role"); role == "presentation" || role == "none" {
		return true
	}
	for n := range descendants(table) {
		switch n.DataAtom {
		case atom.H1, atom.H2, atom.P, atom.Table, atom.Article, atom.Hr:
			return true
		}
	}
	return false
}

// toDivs renames a table and its own rows and cells to div, without those of inner tables.
func toDivs(n *html.Node) {
	n.Data, n.DataAtom = "div", atom.Div
	for c := range n.ChildNodes() {
		switch c.DataAtom {
		case atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr, atom.Td, atom.Th, atom.Caption:
			toDivs(c)
		}
	}
}

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

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

// wordSet returns a set of words.
func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
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
	s = squeeze(restoreSpace(restoreLines(s)))
	if len(s) <= max {
		return s
	}
	return strings.TrimSpace(strings.ToValidUTF8(s[:max], ""))
}
