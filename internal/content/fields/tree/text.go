package tree

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// MaxText limits the bytes of an element's text or HTML; the rest is dropped.
const MaxText = 64 << 10

// Text returns the text of an element and its descendants, except for scripts, styles and templates. White space is
// collapsed, with a space at the end of a block or line.
func (t *Tree) Text(i int) string { return t.text(i, false) }

// OwnText returns the text of an element without its descendants'.
func (t *Tree) OwnText(i int) string { return t.text(i, true) }

func (t *Tree) text(i int, own bool) string {
	var b []byte
	end := int(t.at[i].end)
	if !t.Spend(end - i) {
		return ""
	}
	first := "" // a single text usually needs no copy
	count := 0
	for j := i; j < end && len(b) < MaxText; j++ {
		n := t.nodes[j]
		switch {
		case n.Type == html.TextNode:
			if own && int(t.at[j].parent) != i {
				continue
			}
			if count++; count == 1 {
				first = n.Data
				continue
			}
			if count == 2 {
				b = collapse(b, first)
			}
			b = collapse(b, n.Data)
		case j > i && isUnread(n.DataAtom):
			j = int(t.at[j].end) - 1
		case j > i && count > 0 && breaks(n.DataAtom):
			if count == 1 {
				b, count = collapse(b, first), 2
			}
			b = collapse(b, " ")
		}
	}
	if count == 1 {
		if isCollapsed(first) {
			return cut(first)
		}
		b = collapse(b, first)
	}
	return cut(strings.TrimSuffix(string(b), " "))
}

func isUnread(a atom.Atom) bool { return a == atom.Script || a == atom.Style || a == atom.Template }

// breaks reports whether an element is separated from its neighbors, like blocks, cells and items.
func breaks(a atom.Atom) bool {
	return a == atom.Br || a == atom.Option || kinds[a]&(endsP|cell|rowGroup) != 0 || a == atom.Tr
}

// collapse appends a text with each run of white space replaced by a space, and none at the beginning.
func collapse(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			i++
			if c == ' ' || '\t' <= c && c <= '\r' {
				b = space(b)
			} else {
				b = append(b, c)
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if unicode.IsSpace(r) {
			b = space(b)
		} else {
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return b
}

func space(b []byte) []byte {
	if len(b) > 0 && b[len(b)-1] != ' ' {
		b = append(b, ' ')
	}
	return b
}

func isCollapsed(s string) bool {
	before := byte(' ')
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf || c < ' ' || c == ' ' && before == ' ' {
			return false
		}
		before = c
	}
	return s == "" || before != ' '
}

// Collapse returns a text with each run of white space replaced by a space, cut at MaxText bytes.
func Collapse(s string) string {
	if isCollapsed(s) {
		return cut(s)
	}
	return cut(strings.TrimSuffix(string(collapse(nil, s)), " "))
}

// cut cuts a text to MaxText bytes, between two runes.
func cut(s string) string {
	if len(s) <= MaxText {
		return s
	}
	return strings.ToValidUTF8(s[:MaxText], "")
}

// Attr returns an element's attribute, and whether the element has it.
func (t *Tree) Attr(i int, key string) (string, bool) {
	for _, a := range t.nodes[i].Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

// Name returns an element's name, "" for other nodes.
func (t *Tree) Name(i int) string {
	if t.nodes[i].Type != html.ElementNode {
		return ""
	}
	return t.nodes[i].Data
}

// HTML returns the content of an element as HTML.
func (t *Tree) HTML(i int) string {
	if !t.Spend(4 * int(t.at[i].end-int32(i))) {
		return ""
	}
	w := &bounded{}
	for c := t.nodes[i].FirstChild; c != nil && w.Len() < MaxText; c = c.NextSibling {
		_ = html.Render(w, c) // the error means that the limit is reached
	}
	return cut(w.String())
}

// bounded stops after about MaxText bytes.
type bounded struct{ strings.Builder }

func (w *bounded) Write(b []byte) (int, error) {
	if w.Len() > MaxText {
		return 0, errFull
	}
	return w.Builder.Write(b)
}

var errFull = errors.New("limit reached")

// Nodes returns the number of nodes. The document is the first one.
func (t *Tree) Nodes() int { return len(t.nodes) }

// End returns the index after the last descendant of a node.
func (t *Tree) End(i int) int { return int(t.at[i].end) }

// Parent returns the parent of a node.
func (t *Tree) Parent(i int) int { return int(t.at[i].parent) }

// Node returns a node in the form of package html. The caller must not modify it.
func (t *Tree) Node(i int) *html.Node { return t.nodes[i] }

// Base returns the href of the page's base element, "" if there is none.
func (t *Tree) Base() string {
	for i, n := range t.nodes {
		if n.DataAtom == atom.Base {
			if href, has := t.Attr(i, "href"); has {
				return href
			}
		}
		if n.DataAtom == atom.Body {
			break
		}
	}
	return ""
}
