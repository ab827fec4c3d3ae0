package maintext

import (
	"iter"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// inline are the elements that do not end a line.
var inline = wordSet(`
	a abbr acronym bdi bdo cite code data del dfn kbd label q rb ruby samp span sub sup time var`)

// render returns the text of the subtree that the library found. A line occurs at most as often as on the page; the
// library sometimes returns the only paragraph or list twice, by two of its rules.
func render(found, page *html.Node) string {
	if found == nil {
		return ""
	}
	lines := slices.Collect(linesOf(textOfBlocks(found)))
	times := make(map[string]int, len(lines))
	for _, line := range lines {
		times[line]++
	}
	if len(times) == len(lines) {
		return strings.Join(lines, "\n")
	}
	left := map[string]int{} // number of occurrences on the page of each repeated line
	for line, n := range times {
		if n > 1 {
			left[line] = 0
		}
	}
	for line := range linesOf(textOfBlocks(page)) {
		if n, repeated := left[line]; repeated {
			left[line] = n + 1
		}
	}
	for line, n := range left {
		left[line] = max(n, 1) // the library may have changed the line
	}
	kept := lines[:0]
	for _, line := range lines {
		n, repeated := left[line]
		if repeated && n == 0 {
			continue
		}
		if repeated {
			left[line] = n - 1
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}

// linesOf yields the displayed lines of a text: one line for each block, and each line of pre. White space outside of
// pre is collapsed; empty lines are omitted.
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
		writeRestored(b, n.Data)
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

// tidy collapses the white space of a line's cells and omits empty cells.
func tidy(line string) string {
	if strings.IndexByte(line, '\t') < 0 {
		return strings.TrimRight(restoreSpace(squeeze(line)), " \t")
	}
	var cells []string
	for cell := range strings.SplitSeq(line, "\t") {
		if cell = strings.TrimRight(restoreSpace(squeeze(cell)), " \t"); cell != "" {
			cells = append(cells, cell)
		}
	}
	return strings.Join(cells, "\t")
}
