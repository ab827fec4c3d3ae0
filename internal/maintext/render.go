package maintext

import (
	"strings"

	"golang.org/x/net/html"
)

// inline are the elements that do not break a line.
var inline = map[string]bool{
	"a": true, "abbr": true, "acronym": true, "bdi": true, "bdo": true, "cite": true, "code": true, "data": true, "del": true,
	"dfn": true, "kbd": true, "label": true, "q": true, "rb": true, "ruby": true, "samp": true, "span": true, "sub": true,
	"sup": true, "time": true, "var": true,
}

// lineMark stands for a line break inside pre on its way through the library, which collapses white space.
const lineMark = "\uE000"

// unline makes text's own white space plain and its marked line breaks real.
var unline = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ", "\f", " ", lineMark, "\n")

// render writes a tree as text: a line for each block, in pre a line for each line, white space collapsed, empty lines left out.
// Of a sentence that comes twice in a row one is left: the library finds the only paragraph of a page by two of its rules.
func render(n *html.Node) string {
	if n == nil {
		return ""
	}
	var raw, out strings.Builder
	write(&raw, n)
	last := ""
	for line := range strings.Lines(raw.String()) {
		if line = tidy(line); line == "" || line == last && weigh(line) >= sentence {
			continue
		}
		out.WriteString(line)
		out.WriteByte('\n')
		last = line
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func write(b *strings.Builder, n *html.Node) {
	edge := ""
	switch {
	case n.Type == html.TextNode:
		b.WriteString(unline.Replace(n.Data))
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
		if cell = collapse(cell, len(cell)); cell != "" {
			cells = append(cells, cell)
		}
	}
	return strings.Join(cells, "\t")
}
