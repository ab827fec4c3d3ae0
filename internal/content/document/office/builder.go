package office

import (
	"net/url"
	"strings"
	"time"

	"kumo/internal/content/document"
)

// A builder collects a document within limits.
type builder struct {
	doc   document.Document
	lim   document.Limits
	into  *[]document.Block // nil: the document itself
	page  int
	text  int // bytes of all blocks
	count int // of blocks
	links int
}

// problem records why text is missing. The first one stays.
func (b *builder) problem(err error) {
	if b.doc.Problem == "" {
		b.doc.Problem, b.doc.Detail = document.ProblemOf(err)
	}
}

// optional is for a part without which the document is still readable: its error is recorded unless it is a limit.
func (b *builder) optional(err error) error {
	if err == nil {
		return nil
	}
	if p, _ := document.ProblemOf(err); p == document.TooLarge {
		return err
	}
	b.problem(err)
	return nil
}

// add adds a block that has text or links.
func (b *builder) add(x document.Block) error {
	size := len(x.Text)
	for _, c := range x.Cells {
		size += len(c)
	}
	if size == 0 && len(x.Links) == 0 {
		return nil
	}
	for _, l := range x.Links {
		size += len(l.URL)
	}
	b.count++
	b.text += size + len(x.Cells)
	b.links += len(x.Links)
	switch {
	case b.count > b.lim.Blocks:
		return document.Errorf(document.TooLarge, "the document has more than %d paragraphs and rows", b.lim.Blocks)
	case b.text > b.lim.Text:
		return document.Errorf(document.TooLarge, "the document has more than %d bytes of text", b.lim.Text)
	case b.links > b.lim.Links:
		return document.Errorf(document.TooLarge, "the document has more than %d links", b.lim.Links)
	}
	x.Page = b.page
	b.emit(x)
	return nil
}

// emit adds blocks that were counted before.
func (b *builder) emit(blocks ...document.Block) {
	into := b.into
	if into == nil {
		into = &b.doc.Blocks
	}
	*into = append(*into, blocks...)
}

// collect returns the blocks that a function adds, instead of adding them to the document. If the function fails, they
// are added nonetheless: they are the last that is read.
func (b *builder) collect(read func() error) (blocks []document.Block, err error) {
	outer := b.into
	b.into = &blocks
	err = read()
	b.into = outer
	if err != nil {
		b.emit(blocks...)
		return nil, err
	}
	return blocks, nil
}

// link adds a link without a text of its own.
func (b *builder) link(target string) error {
	if target = webLink(target); target == "" {
		return nil
	}
	b.text += len(target)
	if b.links++; b.links > b.lim.Links || b.text > b.lim.Text {
		return document.Errorf(document.TooLarge, "the document has more than %d links", b.lim.Links)
	}
	b.doc.Links = append(b.doc.Links, target)
	return nil
}

// property adds a property.
func (b *builder) property(name, value string) {
	if value != "" && len(b.doc.Properties) < 100 {
		b.doc.Properties = append(b.doc.Properties, document.Property{Name: name, Value: value})
	}
}

// finish completes the document.
func (b *builder) finish() {
	if b.doc.Title != "" {
		return
	}
	for i := range min(len(b.doc.Blocks), 20) {
		if x := &b.doc.Blocks[i]; x.Kind == document.Heading && (x.Level == 1 || b.doc.Format == document.PPTX ||
			b.doc.Format == document.ODP) {
			b.doc.Title = x.Text
			return
		}
	}
}

// row adds a row of a table, whose cells are given as blocks. A row of one cell is layout: its blocks are added as they
// are.
func (b *builder) row(cells [][]document.Block) {
	if len(cells) == 1 {
		b.emit(cells[0]...)
		return
	}
	row := document.Block{Kind: document.Row, Page: b.page, Cells: make([]string, len(cells))}
	var notes []document.Block
	empty := true
	for i, blocks := range cells {
		var texts []string
		for _, x := range blocks {
			if x.Kind == document.Note {
				notes = append(notes, x)
				continue
			}
			if x.Kind == document.Row {
				x.Text = strings.Join(x.Cells, " ")
			}
			if x.Text != "" {
				texts = append(texts, x.Text)
			}
			row.Links = append(row.Links, x.Links...)
		}
		row.Cells[i] = strings.Join(texts, " ")
		empty = empty && row.Cells[i] == ""
	}
	if !empty || len(row.Links) > 0 {
		b.emit(row)
	}
	b.emit(notes...)
}

// A paragraph is a text with links that is being read. White space is collapsed.
type paragraph struct {
	text  []byte
	links []document.Link
	space bool // white space comes before the next text
	open  int  // where the text of the open link begins
	url   string
}

func (p *paragraph) write(s []byte) {
	for i := 0; i < len(s); {
		n := i
		for n < len(s) && !isSpace(s[n]) {
			n++
		}
		if n > i {
			if p.space && len(p.text) > 0 {
				p.text = append(p.text, ' ')
			}
			p.space = false
			p.text = append(p.text, s[i:n]...)
		}
		for n < len(s) && isSpace(s[n]) {
			p.space = true
			n++
		}
		i = n
	}
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v'
}

// beginLink begins a link and ends the one that is open. A URL that is not relative, http or https begins none.
func (p *paragraph) beginLink(target string) {
	p.endLink()
	p.url, p.open = webLink(target), len(p.text)
}

func (p *paragraph) endLink() {
	if p.url != "" {
		p.links = append(p.links, document.Link{Text: strings.TrimSpace(string(p.text[p.open:])), URL: p.url})
		p.url = ""
	}
}

// block returns the paragraph as a block, and resets the paragraph.
func (p *paragraph) block(kind document.Kind, level int) document.Block {
	p.endLink()
	b := document.Block{Kind: kind, Level: level, Text: string(p.text), Links: p.links}
	*p = paragraph{text: p.text[:0]}
	return b
}

// maxURL is the longest URL in bytes that is a link.
const maxURL = 8 << 10

// webLink returns the target of a link, or "" if it is not on the web: a place in the document, a file, an address.
func webLink(target string) string {
	target = strings.TrimSpace(target)
	if target == "" || target[0] == '#' || target[0] == '\\' || len(target) > maxURL {
		return ""
	}
	if u, err := url.Parse(target); err == nil {
		switch strings.ToLower(u.Scheme) {
		case "", "http", "https", "ftp":
		default:
			return ""
		}
	}
	return target
}

// date returns a date as a document has it: RFC 3339, or only the day if the time has no zone.
func date(s string) string {
	s = strings.TrimSpace(s)
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.Format(time.RFC3339)
	}
	if len(s) < len(time.DateOnly) {
		return ""
	}
	if t, err := time.Parse(time.DateOnly, s[:len(time.DateOnly)]); err == nil {
		return t.Format(time.DateOnly)
	}
	return ""
}

// maxField is how many bytes of a field of metadata are read.
const maxField = 4 << 10

// addName adds a name to a list of authors.
func addName(list, name string) string {
	if len(list) > maxField {
		return list
	}
	var names []string
	for n := range strings.SplitSeq(name, ";") {
		if n = strings.TrimSpace(n); n != "" && !strings.Contains(", "+list+", ", ", "+n+", ") {
			names = append(names, n)
		}
	}
	if list != "" {
		names = append([]string{list}, names...)
	}
	return strings.Join(names, ", ")
}
