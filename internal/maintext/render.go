package maintext

import (
	"iter"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// inline are the elements that do not break a line.
var inline = map[string]bool{
	"a": true, "abbr": true, "acronym": true, "bdi": true, "bdo": true, "cite": true, "code": true, "data": true,
	"del": true,
	"dfn": true, "kbd": true, "label": true, "q": true, "rb": true, "ruby": true, "samp": true, "span": true, "sub": true,
	"sup": true, "time": true, "var": true,
}

// render writes the part of a page that the library has found as text. A line comes no oftener than on the page: the
// library finds the only paragraph of a page, or its only list, by two of its rules.
func render(found, page *html.Node) string {
	if found == nil {
		return ""
	}
	left := map[string]int{}
	for line := range linesOf(textOfBlocks(page)) {
		left[line]++
	}
	var kept []string
	for line := range linesOf(textOfBlocks(found)) {
		if n, ok := left[line]; !ok || n > 0 {
			left[line] = n - 1
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// linesOf gives the lines of a text as they are shown: a line for each block, in pre a line for each line, white space
// collapsed outside of pre, empty lines left out.
func linesOf(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if line = tidy(line); line != "" && !yield(line) {
				return
			}
		}
	}
}

func textOfBlocks(n *html.Node) string {
	var b strings.Builder
	write(&b, n)
	return b.String()
}

func write(b *strings.Builder, n *html.Node) {
	edge := ""
	switch {
	case n.Type == html.TextNode:
		b.WriteString(unline.Replace(n.Data))
		return
	case n.DataAtom == atom.Head, n.DataAtom == atom.Script:
		return
	case n.Data == "td", n.Data == "th":
		edge = "\t"
	case !inline[n.Data]:
		edge = "\n"
	}
	b.WriteString(edge)
	for c := range n.ChildNodes() {
		write(b, c)
	}
	b.WriteString(edge)
}

// tidy collapses the white space of a line's cells and leaves out empty ones.
func tidy(line string) string {
	var cells []string
	for cell := range strings.SplitSeq(line, "\t") {
		if cell = strings.TrimRight(unmarked(squeeze(cell)), " \t"); cell != "" {
			cells = append(cells, cell)
		}
	}
	return strings.Join(cells, "\t")
}
