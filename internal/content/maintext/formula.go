package maintext

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxFormula bounds the levels of MathML that are read.
const maxFormula = 64

// isTeX reports whether an element is a script with a formula in TeX, which MathJax replaces.
func isTeX(n *html.Node) bool {
	return n.DataAtom == atom.Script && strings.HasPrefix(attr(n, "type"), "math/tex")
}

// hasMath reports whether an element has a formula as its first child. Pages hide it and show a picture instead.
func hasMath(n *html.Node) bool {
	for c := range n.ChildNodes() {
		if c.Type == html.ElementNode {
			return c.DataAtom == atom.Math
		}
	}
	return false
}

// formulaOf returns a formula in TeX between dollar signs; "" if it has none, or a long one.
func (d *document) formulaOf(n *html.Node) string {
	sign, tex := "$", ""
	switch {
	case n.DataAtom == atom.Script:
		if strings.Contains(attr(n, "type"), "mode=display") {
			sign = "$$"
		}
		if n.FirstChild != nil {
			tex = n.FirstChild.Data
		}
	default:
		if attr(n, "display") == "block" {
			sign = "$$"
		}
		tex = d.annotationOf(n)
		if alt := attr(n, "alttext"); tex == "" && strings.ContainsAny(alt, `\^_{`) {
			tex = alt
		}
		if tex == "" {
			tex = texOf(n, maxFormula)
		}
	}
	tex = squeeze(tex)
	if inner, ok := strings.CutPrefix(tex, `{\displaystyle `); ok {
		tex = strings.TrimSpace(strings.TrimSuffix(inner, "}"))
	}
	if tex == "" || len(tex) > maxPlace || strings.Contains(tex, "$") {
		return ""
	}
	return sign + printable(tex, false) + sign
}

// annotationOf returns the TeX source in MathML.
func (d *document) annotationOf(n *html.Node) string {
	for c := range d.near(n) {
		if c.DataAtom == atom.Annotation && strings.HasSuffix(attr(c, "encoding"), "tex") && c.FirstChild != nil {
			return c.FirstChild.Data
		}
	}
	return ""
}

// texOf converts presentation MathML to TeX.
func texOf(n *html.Node, depth int) string {
	if n.Type == html.TextNode {
		return strings.TrimSpace(n.Data)
	}
	if depth == 0 {
		return ""
	}
	var all []string
	for c := range n.ChildNodes() {
		if s := texOf(c, depth-1); s != "" || c.Type == html.ElementNode {
			all = append(all, s)
		}
	}
	part := func(i int) string {
		if i < len(all) {
			return all[i]
		}
		return ""
	}
	switch n.Data {
	case "annotation", "annotation-xml":
		return ""
	case "semantics":
		return part(0)
	case "mtext":
		return `\text{` + strings.Join(all, "") + "}"
	case "msup", "mover":
		return part(0) + "^{" + part(1) + "}"
	case "msub", "munder":
		return part(0) + "_{" + part(1) + "}"
	case "msubsup", "munderover":
		return part(0) + "_{" + part(1) + "}^{" + part(2) + "}"
	case "mfrac":
		return `\frac{` + part(0) + "}{" + part(1) + "}"
	case "msqrt":
		return `\sqrt{` + strings.Join(all, " ") + "}"
	case "mroot":
		return `\sqrt[` + part(1) + "]{" + part(0) + "}"
	case "mfenced":
		return "(" + strings.Join(all, ", ") + ")"
	case "mtable":
		return `\begin{matrix}` + strings.Join(all, ` \\ `) + `\end{matrix}`
	case "mtr":
		return strings.Join(all, " & ")
	}
	return strings.Join(all, " ")
}
