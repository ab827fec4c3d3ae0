package maintext

import (
	"iter"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// inline are the elements that do not break a line.
var inline = wordSet(`
	a abbr acronym bdi bdo cite code data del dfn kbd label q rb ruby samp span sub sup time var`)

// render writes the part of a page that the library has found as text. A line comes no oftener than on the page: the
// library finds the only paragraph of a page, or its only list, by two of its rules.
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
	left := map[string]int{} // of each line that is repeated, how often the page has it
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
		left[line] = max(n, 1) // the library may have changed a line
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

// tidy collapses the white space of a line's cells and leaves out empty ones.
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
