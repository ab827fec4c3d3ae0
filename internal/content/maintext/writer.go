package maintext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A writer writes the text of nodes: a line for each block, tabs between the cells of a row, and the lines of pre
// unchanged. White space elsewhere is collapsed, and empty lines are omitted. It excludes menus: passages and lists
// that are only links with short labels.
type writer struct {
	doc      *document
	lists    bool // keep lists of links
	trailing bool // keep headings at the end
	tiles    bool // exclude lists of other products
	headings map[string]bool

	out      []byte
	line     []byte
	space    bool // white space precedes the next character
	cell     bool // the next character begins a cell
	nodes    []int
	sum      sums // of the line
	heading  bool // the line is in a heading
	item     bool // the line is in an item, a term or a cell
	headEnd  int  // length of out before the headings at its end; -1: none
	headNode []int
	begun    bool
	full     bool // text was left out because of maxText
	open     []openBlock
	code     int // end of the innermost pre
	headers  int // end of the innermost heading
	items    int
}

type openBlock struct {
	end       int
	style     style
	rowOfData bool
}

func (w *writer) reset(d *document) {
	*w = writer{doc: d, tiles: w.tiles, out: w.out[:0], line: w.line[:0], nodes: w.nodes[:0], open: w.open[:0],
		headNode: w.headNode[:0], headEnd: -1}
}

// write appends the text of a node and its descendants.
func (w *writer) write(root int) {
	d := w.doc
	end := d.tree.End(root)
	w.code, w.headers, w.items = 0, 0, 0
	for i := root; i < end; i++ {
		w.close(i)
		if d.skips(i) {
			i = d.tree.End(i) - 1
			continue
		}
		node := d.tree.Node(i)
		switch node.Type {
		case html.TextNode:
			w.text(i, node.Data)
		case html.ElementNode:
			if w.excludes(i, node) {
				w.drop(i)
				i = d.tree.End(i) - 1
				continue
			}
			w.start(i, node)
		}
	}
	w.close(end)
	w.flush()
}

// drop marks a node and its descendants as excluded.
func (w *writer) drop(i int) {
	for end := w.doc.tree.End(i); i < end; i++ {
		w.doc.flags[i] |= dropped
	}
}

// excludes reports whether an element is a list of links with short labels, as in a menu.
func (w *writer) excludes(i int, n *html.Node) bool {
	switch n.DataAtom {
	case atom.Ul, atom.Div, atom.Section, atom.Dir:
	default:
		return false
	}
	if w.lists {
		return false
	}
	s := w.doc.between(i)
	if w.tiles && s.links >= 3 && 3*(s.text-s.link) <= s.link {
		return true
	}
	return s.links > 1 && s.signs == 0 && s.link < shortLabel*s.links
}

// shortLabel is the weight of a link from which it is a title rather than a label of a menu.
const shortLabel = 16

func (w *writer) start(i int, n *html.Node) {
	end := w.doc.tree.End(i)
	is := styleOf(n.DataAtom)
	if w.doc.flags[i]&inMath != 0 {
		is = inline
	}
	switch is {
	case inline:
		return
	case lineBreak:
		if w.inRow() {
			w.space = true
			return
		}
		w.flush()
		return
	}
	row := false
	switch n.DataAtom {
	case atom.Pre:
		w.code = max(w.code, end)
	case atom.Li:
		if isList(w.doc.tree.Node(w.doc.tree.Parent(i)).DataAtom) {
			w.items = max(w.items, end)
		}
	case atom.Dt, atom.Dd:
		w.items = max(w.items, end)
	case atom.Tr:
		row = w.isDataRow(i)
	}
	if isHeading(n.DataAtom) {
		w.headers = max(w.headers, end)
	}
	inRow := w.inRow()
	switch {
	case inRow && is == cell:
		w.cell = true
	case inRow:
		w.space = true
	default:
		w.flush()
	}
	w.open = append(w.open, openBlock{end, is, row || inRow})
}

// isDataRow reports whether a row belongs to a table of data. Its cells are one line.
func (w *writer) isDataRow(i int) bool {
	for j := w.doc.tree.Parent(i); j > 0; j = w.doc.tree.Parent(j) {
		switch w.doc.tree.Node(j).DataAtom {
		case atom.Table:
			return w.doc.flags[j]&layout == 0
		case atom.Tbody, atom.Thead, atom.Tfoot:
		default:
			return false
		}
	}
	return false
}

func (w *writer) inRow() bool { return len(w.open) > 0 && w.open[len(w.open)-1].rowOfData }

// close ends the blocks that end before a node.
func (w *writer) close(i int) {
	for last := len(w.open) - 1; last >= 0 && w.open[last].end <= i; last-- {
		b := w.open[last]
		w.open = w.open[:last]
		switch {
		case w.inRow() && b.style == cell:
			w.cell = true
		case w.inRow():
			w.space = true
		default:
			w.flush()
		}
	}
}

func (w *writer) text(i int, s string) {
	d := w.doc
	a, b := d.sums[i], d.sums[i+1]
	w.sum.text += b.text - a.text
	w.sum.link += b.link - a.link
	w.sum.signs += b.signs - a.signs
	if b.link > a.link {
		w.sum.links++
	}
	w.heading = w.heading || i < w.headers
	w.item = w.item || i < w.items || w.inRow()
	w.nodes = append(w.nodes, i)
	if i < w.code {
		w.codeText(s)
		return
	}
	w.line = w.collapse(w.line, s)
}

// collapse appends a text with each run of white space replaced by one space, and none at the beginning. It drops soft
// hyphens and control characters.
func (w *writer) collapse(line []byte, s string) []byte {
	begin := 0
	for i := 0; i < len(s); {
		c := s[i]
		size := 1
		isSpace, isDropped := false, false
		switch {
		case c > ' ' && c < 0x7F:
			if !w.space && !w.cell {
				i++
				continue
			}
		case c == ' ' || '\t' <= c && c <= '\r':
			isSpace = true
		case c < ' ' || c == 0x7F:
			isDropped = c != 0
		case c == 0xC2 || c >= 0xE1 && c <= 0xE3:
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			isSpace, isDropped = unicode.IsSpace(r), r == '\u00AD'
		}
		if !isSpace && !isDropped {
			if w.cell || w.space {
				line = append(line, s[begin:i]...)
				begin = i
				line = w.separate(line)
			}
			i += size
			continue
		}
		line = append(line, s[begin:i]...)
		w.space = w.space || isSpace
		i += size
		begin = i
	}
	return append(line, s[begin:]...)
}

// separate appends what precedes the next character: a tab between cells, or a space.
func (w *writer) separate(line []byte) []byte {
	if len(line) > 0 {
		if w.cell {
			line = append(line, '\t')
		} else {
			line = append(line, ' ')
		}
	}
	w.cell, w.space = false, false
	return line
}

// codeText appends the text of pre: its lines keep their white space.
func (w *writer) codeText(s string) {
	if w.inRow() {
		w.line = w.collapse(w.line, s)
		return
	}
	for {
		line, rest, more := strings.Cut(s, "\n")
		for _, r := range line {
			switch {
			case r == '\u00A0':
				w.line = append(w.line, ' ')
			case r == '\u00AD', r != '\t' && unicode.IsControl(r):
			default:
				w.line = utf8.AppendRune(w.line, r)
			}
		}
		if !more {
			return
		}
		w.flushCode()
		s = rest
	}
}

func (w *writer) flushCode() {
	w.line = trimEnd(w.line)
	w.flush()
}

func trimEnd(line []byte) []byte {
	for len(line) > 0 {
		switch line[len(line)-1] {
		case ' ', '\t':
			line = line[:len(line)-1]
		default:
			return line
		}
	}
	return line
}

// flush ends the line, and appends it to the text unless it is a menu.
func (w *writer) flush() {
	w.line = trimEnd(w.line)
	if len(w.line) > 0 {
		switch {
		case len(w.out)+len(w.line) >= maxText:
			w.full = true
		case w.isMenu() || w.isHeadline():
			for _, i := range w.nodes {
				w.doc.flags[i] |= dropped
			}
		default:
			w.append()
		}
	}
	w.line, w.nodes, w.sum = w.line[:0], w.nodes[:0], sums{}
	w.space, w.cell, w.heading, w.item = false, false, false, false
}

func (w *writer) append() {
	if w.heading {
		if w.headEnd < 0 {
			w.headEnd, w.headNode = len(w.out), w.headNode[:0]
		}
		w.headNode = append(w.headNode, w.nodes...)
	} else {
		w.headEnd = -1
	}
	if len(w.out) > 0 {
		w.out = append(w.out, '\n')
	}
	w.out = append(w.out, w.line...)
	w.begun = true
}

// isHeadline reports whether the line repeats the page's headline at the beginning of the text.
func (w *writer) isHeadline() bool { return !w.begun && w.headings[string(w.line)] }

// isMenu reports whether the line is only links with short labels, outside of items and rows.
func (w *writer) isMenu() bool {
	return !w.lists && !w.heading && !w.item && w.sum.signs == 0 && w.sum.links > 0 && w.sum.link < shortLabel*w.sum.links
}

// finish returns the text, without headings at its end. A text of headings alone is none.
func (w *writer) finish() string {
	if w.headEnd == 0 || w.headEnd > 0 && !w.trailing {
		w.out = w.out[:w.headEnd]
		for _, i := range w.headNode {
			w.doc.flags[i] |= dropped
		}
	}
	return string(w.out)
}

func isList(a atom.Atom) bool { return a == atom.Ul || a == atom.Ol || a == atom.Menu || a == atom.Dir }
