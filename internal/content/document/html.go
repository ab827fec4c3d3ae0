package document

import (
	"bytes"
	"html"
	"net/url"
	"strconv"
	"strings"
)

// Plain returns the text: one line per block, cells separated by tabs.
func (d *Document) Plain() string {
	var b strings.Builder
	for i := range d.Blocks {
		x := &d.Blocks[i]
		text := x.Text
		if x.Kind == Row {
			text = strings.TrimRight(strings.Join(x.Cells, "\t"), "\t")
		}
		if text = strings.TrimSpace(strings.ReplaceAll(text, "\n", " ")); text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(text)
	}
	return b.String()
}

// LinkCount returns the number of links.
func (d *Document) LinkCount() int {
	n := len(d.Links)
	for i := range d.Blocks {
		n += len(d.Blocks[i].Links)
	}
	return n
}

// HTML returns the document as an HTML page in UTF-8: title, author, dates and language as a page declares them, and
// the blocks as headings, paragraphs, lists and tables. Links keep their targets; those without text of their own are
// listed at the end.
func (d *Document) HTML() []byte {
	w := &htmlWriter{}
	w.page(d)
	return w.Bytes()
}

type htmlWriter struct {
	bytes.Buffer
	open string // the element around the items or rows that are written; "" if none
}

func (w *htmlWriter) page(d *Document) {
	w.WriteString("<!DOCTYPE html>\n<html")
	if d.Lang != "" {
		w.attr("lang", d.Lang)
	}
	w.WriteString("><head><meta charset=\"utf-8\"><title>")
	w.text(d.Title)
	w.WriteString("</title>\n")
	w.meta("author", d.Author)
	w.meta("description", d.Description)
	w.meta("copyright", d.Rights)
	w.meta("dcterms.created", d.Published)
	w.meta("dcterms.modified", d.Modified)
	for _, p := range d.Properties {
		w.meta(p.Name, p.Value)
	}
	w.WriteString("</head><body><article>\n")
	page := 0
	for i := range d.Blocks {
		b := &d.Blocks[i]
		anchor := ""
		if b.Page > page {
			page, anchor = b.Page, "page-"+strconv.Itoa(b.Page)
		}
		w.block(b, anchor)
	}
	w.inside("")
	w.WriteString("</article>\n")
	if len(d.Links) > 0 {
		w.WriteString("<nav><ul>\n")
		for _, l := range d.Links {
			w.WriteString("<li>")
			w.link(Link{URL: l}, l)
			w.WriteString("</li>\n")
		}
		w.WriteString("</ul></nav>\n")
	}
	w.WriteString("</body></html>\n")
}

func (w *htmlWriter) meta(name, content string) {
	if content == "" {
		return
	}
	w.WriteString("<meta")
	w.attr("name", name)
	w.attr("content", content)
	w.WriteString(">\n")
}

func (w *htmlWriter) attr(name, value string) {
	w.WriteByte(' ')
	w.WriteString(name)
	w.WriteString(`="`)
	w.text(value)
	w.WriteByte('"')
}

func (w *htmlWriter) text(s string) { w.WriteString(html.EscapeString(s)) }

// inside ends the list or table that is open, and begins another one, unless it is the same.
func (w *htmlWriter) inside(element string) {
	if w.open == element {
		return
	}
	if w.open != "" {
		w.WriteString("</" + w.open + ">\n")
	}
	if w.open = element; element != "" {
		w.WriteString("<" + element + ">\n")
	}
}

func (w *htmlWriter) block(b *Block, anchor string) {
	element, around := "p", ""
	switch b.Kind {
	case Heading:
		element = "h" + strconv.Itoa(min(max(b.Level, 1), 6))
	case Item:
		element, around = "li", "ul"
	case Row:
		element, around = "tr", "table"
	case Note:
		element = "aside"
	}
	cell := "td"
	if w.open != "table" {
		cell = "th" // Markdown has no tables without one
	}
	w.inside(around)
	w.WriteString("<" + element)
	if anchor != "" {
		w.attr("id", anchor)
	}
	w.WriteByte('>')
	rest := b.Links
	if b.Kind == Row {
		for _, c := range b.Cells {
			w.WriteString("<" + cell + ">")
			rest = w.linked(c, rest)
			w.WriteString("</" + cell + ">")
		}
	} else {
		rest = w.linked(b.Text, rest)
	}
	for _, l := range rest {
		w.WriteByte(' ')
		w.link(l, l.URL)
	}
	w.WriteString("</" + element + ">\n")
}

// linked writes a text with those links whose texts occur in it, in their order. It returns the others.
func (w *htmlWriter) linked(s string, links []Link) (rest []Link) {
	for i, l := range links {
		at := -1
		if l.Text != "" {
			at = strings.Index(s, l.Text)
		}
		if at < 0 {
			rest = append(rest, links[i])
			continue
		}
		w.text(s[:at])
		w.link(l, l.Text)
		s = s[at+len(l.Text):]
	}
	w.text(s)
	return rest
}

func (w *htmlWriter) link(l Link, text string) {
	if u, err := url.Parse(strings.TrimSpace(l.URL)); err == nil && u.Scheme != "" && u.Scheme != "http" &&
		u.Scheme != "https" {
		w.text(text) // mailto and the like are no links of a crawl
		return
	}
	w.WriteString("<a")
	w.attr("href", l.URL)
	w.WriteByte('>')
	w.text(text)
	w.WriteString("</a>")
}
