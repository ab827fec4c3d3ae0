package maintext

import "golang.org/x/net/html/atom"

// A style is the part that an element has in the layout of text.
type style uint8

const (
	block     style = iota // begins and ends a line
	inline                 // part of a line
	cell                   // part of a table's row
	lineBreak              // ends a line
	removed                // neither the element nor its content is text
	boiler                 // a block that is not main text, unless it has most of the page's text
)

func styleOf(a atom.Atom) style {
	switch a {
	case atom.A, atom.Abbr, atom.Acronym, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Cite, atom.Code, atom.Data, atom.Del,
		atom.Dfn, atom.Em, atom.Font, atom.I, atom.Img, atom.Input, atom.Ins, atom.Kbd, atom.Label, atom.Mark, atom.Nobr,
		atom.Q, atom.Rb, atom.Ruby, atom.S, atom.Samp, atom.Small, atom.Span, atom.Strike, atom.Strong, atom.Sub, atom.Sup,
		atom.Time, atom.Tt, atom.U, atom.Var, atom.Wbr, atom.Picture, atom.Source, atom.Link, atom.Meta, atom.Math, atom.Mi,
		atom.Mo, atom.Mn, atom.Ms, atom.Mtext:
		return inline
	case atom.Td, atom.Th:
		return cell
	case atom.Br:
		return lineBreak
	case atom.Script, atom.Style, atom.Template, atom.Dialog, atom.Rt, atom.Rp, atom.Rtc, atom.Svg, atom.Iframe,
		atom.Noembed, atom.Noframes, atom.Noscript, atom.Textarea, atom.Select, atom.Datalist, atom.Canvas, atom.Audio,
		atom.Video, atom.Map, atom.Object, atom.Applet, atom.Annotation, atom.AnnotationXml, atom.Title:
		return removed
	case atom.Nav, atom.Header, atom.Footer, atom.Aside, atom.Form, atom.Button, atom.Menu, atom.Address:
		return boiler
	}
	return block
}

func isHeading(a atom.Atom) bool {
	switch a {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return true
	}
	return false
}
