package maintext

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// markdown writes the part of a page that has the main text in Markdown: of its lines those, and as often, that the
// text has, which knows what is said twice and what is none of it. Where there is no tree, the text's lines are
// paragraphs.
func markdown(found *html.Node, text string, base *url.URL) string {
	m := &marker{left: map[string]int{}, base: base}
	var lines []piece
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		m.left[line]++
		if found == nil {
			lines = append(lines, m.line([]token{{text: line}}))
		}
	}
	if found == nil {
		return joined(lines)
	}
	if first := firstLine(found); !strings.HasPrefix(text, first) || !strings.HasPrefix(text[len(first):]+"\n", "\n") {
		m.skip = first // the heading that was taken out; another line may say the same
	}
	return joined(m.blocks(found, nil))
}

// baseOf is what a page's references are resolved against; nil if it has no URL.
func baseOf(doc *html.Node, page string) *url.URL {
	base, err := url.Parse(page)
	if err != nil || page == "" {
		return nil
	}
	for n := range descendants(doc) {
		if n.DataAtom == atom.Base && attr(n, "href") != "" {
			if to, err := base.Parse(attr(n, "href")); err == nil {
				return to
			}
			break
		}
	}
	return base
}

// A marker makes Markdown of a tree.
type marker struct {
	left map[string]int // lines of the text that are not written yet
	skip string         // a line that is none of it when it comes first
	base *url.URL
}

// A piece is a block, one of Markdown's, without what the blocks around it put before its lines.
type piece struct {
	text string
	list byte // the mark of a list's items, 0 for another block
}

// joined puts an empty line between blocks.
func joined(blocks []piece) string {
	var b strings.Builder
	for i, x := range blocks {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(x.text)
	}
	return b.String()
}

// take reports whether a line is to be written, and that it is.
func (m *marker) take(line string) bool {
	if line != "" && line == m.skip {
		m.skip = ""
		return false
	}
	if m.left[line] == 0 {
		return false
	}
	m.left[line]--
	return true
}

// anyWanted calls take for each line of a text and reports whether any line belongs to the output.
func (m *marker) anyWanted(text string) (any bool) {
	for line := range linesOf(text) {
		any = m.take(line) || any
	}
	return any
}

// blocks writes what is below a node. Words that stand beside blocks are paragraphs.
func (m *marker) blocks(n *html.Node, all []piece) []piece {
	var run []*html.Node // inline
	flush := func() {
		all = m.paragraph(run, all)
		run = run[:0]
	}
	for c := range n.ChildNodes() {
		if c.Type == html.TextNode || c.DataAtom == atom.Br || inline[c.Data] && !hasBlock(c) {
			run = append(run, c)
			continue
		}
		flush()
		all = m.block(c, all)
	}
	flush()
	return all
}

// hasBlock reports whether an inline element holds what is not.
func hasBlock(n *html.Node) bool {
	for d := range descendants(n) {
		if d.Type == html.ElementNode && !inline[d.Data] && d.DataAtom != atom.Br {
			return true
		}
	}
	return false
}

func (m *marker) block(n *html.Node, all []piece) []piece {
	if n.Type != html.ElementNode && n.Type != html.DocumentNode {
		return all
	}
	switch n.DataAtom {
	case atom.Head, atom.Script:
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return m.heading(n, all)
	case atom.Pre:
		return m.code(n, all)
	case atom.Ul, atom.Ol, atom.Menu:
		return m.list(n, all)
	case atom.Table:
		return m.table(n, all)
	case atom.Blockquote:
		if inner := joined(m.blocks(n, nil)); inner != "" {
			all = append(all, piece{text: indented(inner, "> ", "> ")})
		}
	default:
		return m.blocks(n, all)
	}
	return all
}

// paragraph writes inline nodes; a line break in them stays one.
func (m *marker) paragraph(run []*html.Node, all []piece) []piece {
	var lines []string
	for _, tokens := range m.lines(run) {
		if m.take(plainOf(tokens)) {
			lines = append(lines, m.line(tokens).text)
		}
	}
	if len(lines) == 0 {
		return all
	}
	return append(all, piece{text: strings.Join(lines, "\\\n")})
}

func (m *marker) heading(n *html.Node, all []piece) []piece {
	if hasBlock(n) {
		return m.blocks(n, all)
	}
	level := int(n.Data[1] - '0')
	for _, tokens := range m.lines(slices.Collect(n.ChildNodes())) {
		if !m.take(plainOf(tokens)) {
			continue
		}
		text := escapeHeading(inlineOf(tokens, false))
		all = append(all, piece{text: strings.Repeat("#", level) + " " + text})
	}
	return all
}

func (m *marker) code(pre *html.Node, all []piece) []piece {
	code := textOfBlocks(pre)
	if !m.anyWanted(code) {
		return all
	}
	var lines []string
	for line := range strings.Lines(code) {
		line = strings.ReplaceAll(unmarked(strings.TrimRight(line, "\n")), imageMark, "")
		lines = append(lines, strings.TrimRight(printable(line), " \t"))
	}
	text := strings.Trim(strings.Join(lines, "\n"), "\n")
	if text == "" {
		return all
	}
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	return append(all, piece{text: fence + "\n" + text + "\n" + fence})
}

func longestRun(s string, c byte) (longest int) {
	n := 0
	for i := range len(s) {
		if s[i] != c {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}

// list writes a list, with another mark than one right before it.
func (m *marker) list(n *html.Node, all []piece) []piece {
	ordered := n.DataAtom == atom.Ol
	mark := byte('-')
	if ordered {
		mark = '.'
	}
	if len(all) > 0 && all[len(all)-1].list == mark {
		mark = map[byte]byte{'-': '*', '.': ')'}[mark]
	}
	number, err := strconv.Atoi(attr(n, "start"))
	if err != nil || number < 0 || number > 1_000_000 {
		number = 1
	}
	var items []string
	between := "\n"
	for c := range n.ChildNodes() {
		if c.Type != html.ElementNode {
			continue
		}
		inner := m.blocks(c, nil)
		if c.DataAtom != atom.Li {
			inner = m.block(c, nil)
		}
		if len(inner) == 0 {
			continue
		}
		begin := string(mark) + " "
		if ordered {
			begin = strconv.Itoa(number) + begin
			number++
		}
		text := inner[0].text
		for i, x := range inner[1:] {
			if i == 0 && x.list != 0 && inner[0].list == 0 && !strings.HasPrefix(text, "```") {
				text += "\n" + x.text // a list in an item
				continue
			}
			text += "\n\n" + x.text
			between = "\n\n"
		}
		items = append(items, indented(text, begin, strings.Repeat(" ", len(begin))))
	}
	if len(items) == 0 {
		return all
	}
	return append(all, piece{strings.Join(items, between), mark})
}

// indented puts something before each line of a text.
func indented(text, first, rest string) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		before := rest
		if i == 0 {
			before = first
		} else {
			b.WriteByte('\n')
		}
		if line == "" {
			before = strings.TrimRight(before, " ")
		}
		b.WriteString(before)
		b.WriteString(line)
	}
	return b.String()
}

const mostColumns = 200 // of a table; one that has more is paragraphs

// table writes a table; the first row is its head if that has cells for it. One with a column alone is paragraphs.
func (m *marker) table(n *html.Node, all []piece) []piece {
	rows, columns := rowsOf(n, nil), 0
	for _, row := range rows {
		columns = max(columns, len(cellsOf(row)))
	}
	if columns < 2 || columns > mostColumns {
		return m.blocks(n, all)
	}
	var lines []string
	width := 0
	for _, part := range tableParts(n) {
		all = m.block(part, all) // a caption
	}
	var kept [][]string
	headed := false
	for _, row := range rows {
		cells := cellsOf(row)
		if len(cells) == 0 || !m.takeRow(row, cells) {
			continue
		}
		if len(kept) == 0 {
			headed = cells[0].DataAtom == atom.Th && cells[len(cells)-1].DataAtom == atom.Th
		}
		var texts []string
		for _, c := range cells {
			texts = append(texts, m.cell(c))
		}
		width = max(width, len(texts))
		kept = append(kept, texts)
	}
	if len(kept) == 0 {
		return all
	}
	if !headed {
		kept = slices.Insert(kept, 0, []string{})
	}
	for i, row := range kept {
		if i == 0 { // the others may have fewer
			row = append(row, make([]string, width-len(row))...)
		}
		lines = append(lines, "| "+strings.Join(row, " | ")+" |")
		if i == 0 {
			lines = append(lines, "|"+strings.Repeat(" --- |", width))
		}
	}
	return append(all, piece{text: strings.Join(lines, "\n")})
}

func rowsOf(n *html.Node, all []*html.Node) []*html.Node {
	for c := range n.ChildNodes() {
		switch c.DataAtom {
		case atom.Tr:
			all = append(all, c)
		case atom.Thead, atom.Tbody, atom.Tfoot:
			all = rowsOf(c, all)
		}
	}
	return all
}

func cellsOf(row *html.Node) (all []*html.Node) {
	for c := range row.ChildNodes() {
		if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
			all = append(all, c)
		}
	}
	return all
}

func tableParts(n *html.Node) (all []*html.Node) {
	for c := range n.ChildNodes() {
		if c.DataAtom == atom.Caption {
			all = append(all, c)
		}
	}
	return all
}

// takeRow takes a row's line, or where the text has its cells by themselves, these.
func (m *marker) takeRow(row *html.Node, cells []*html.Node) (any bool) {
	if m.anyWanted(textOfBlocks(row)) {
		return true
	}
	for _, c := range cells {
		any = m.anyWanted(textOfBlocks(c)) || any
	}
	return any
}

// cell is what stands in a cell, in one line.
func (m *marker) cell(n *html.Node) string {
	var tokens []token
	for _, line := range m.lines([]*html.Node{n}) {
		tokens = append(append(tokens, line...), token{text: " "})
	}
	return inlineOf(tokens, true)
}

// line is a block of one line of words.
func (m *marker) line(tokens []token) piece { return piece{text: escapeStart(inlineOf(tokens, false))} }
