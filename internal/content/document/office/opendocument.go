package office

import (
	"encoding/xml"
	"strconv"
	"strings"

	"kumo/internal/content/document"
)

const manifest = "META-INF/manifest.xml"

// manifestType returns the media type that the manifest of an OpenDocument file states; "" if it states none.
func (r *reader) manifestType() (t string) {
	_ = r.xml(manifest, func(x *xmlReader, _ *xml.StartElement) error {
		return x.each(func(e *xml.StartElement) error {
			if attr(e, "full-path") == "/" {
				t = attr(e, "media-type")
			}
			return nil
		}, nil)
	})
	return t
}

// openDocument reads an odt, ods or odp file.
func (r *reader) openDocument() error {
	encrypted := r.has("encrypted-package")
	err := r.optional(r.xmlIf(manifest, func(x *xmlReader, _ *xml.StartElement) error {
		return x.each(func(entry *xml.StartElement) error {
			name := attr(entry, "full-path")
			return x.each(func(e *xml.StartElement) error {
				encrypted = encrypted || e.Name.Local == "encryption-data" && name == "content.xml"
				return nil
			}, nil)
		}, nil)
	}))
	if err != nil {
		return err
	}
	if encrypted {
		return document.Errorf(document.Encrypted, "the document needs a password")
	}
	if err := r.optional(r.xmlIf("meta.xml", r.openMeta)); err != nil {
		return err
	}
	if !r.has("content.xml") && r.has("styles.xml") {
		return nil // a template of nothing but styles
	}
	o := &openReader{reader: r, parents: map[string]string{}, objects: map[string]bool{}}
	err = r.xml("content.xml", o.content)
	if r.page > 0 {
		r.doc.Pages = r.page
	}
	return err
}

// openMeta reads meta.xml.
func (r *reader) openMeta(x *xmlReader, _ *xml.StartElement) error {
	initial, last := "", ""
	err := x.find(func(e *xml.StartElement) error {
		d := &r.doc
		if e.Name.Local == "document-statistic" {
			if n, err := strconv.Atoi(attr(e, "page-count")); err == nil && n > 0 && n < 1e6 && d.Format == document.ODT {
				d.Pages = n
			}
			return nil
		}
		name := e.Name.Local
		if name == "user-defined" {
			name = strings.ToLower(attr(e, "name"))
		}
		v, err := x.text(maxField)
		if err != nil || v == "" {
			return err
		}
		switch name {
		case "title":
			d.Title = v
		case "initial-creator":
			initial = v
		case "creator":
			last = v
		case "creation-date":
			d.Published = date(v)
		case "date":
			d.Modified = date(v)
		case "language":
			d.Lang = v
		case "description":
			d.Description = v
		case "rights", "copyright", "license":
			if d.Rights == "" {
				d.Rights = v
			}
		case "subject":
			r.property("subject", v)
		case "keyword":
			r.property("keywords", v)
		}
		return nil
	}, "title", "initial-creator", "creator", "creation-date", "date", "language", "description", "rights", "subject",
		"keyword", "user-defined", "document-statistic")
	if r.doc.Author = addName("", initial); initial == "" {
		r.doc.Author = addName("", last)
	}
	return err
}

// An openReader reads content.xml of an OpenDocument file.
type openReader struct {
	*reader
	parents map[string]string // of automatic styles
	p       paragraph
	pending []document.Block // text boxes and notes of the paragraph that is read
	noted   bool             // notes of the speaker are read
	objects map[string]bool  // names of embedded objects that were read
	inside  bool             // an embedded object is read
}

func (o *openReader) content(x *xmlReader, _ *xml.StartElement) error {
	return x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "automatic-styles":
			return o.styles(x)
		case "body":
			return o.body(x)
		}
		return nil
	}, nil)
}

// object reads an embedded sheet or chart, unless it is in another one.
func (o *openReader) object(href string) error {
	name := resolve("", href+"/content.xml")
	if o.inside || o.objects[name] || !o.has(name) {
		return nil
	}
	o.objects[name], o.inside = true, true
	defer func() { o.inside = false }()
	return o.apart(func() error { return o.optional(o.xml(name, o.content)) })
}

func (o *openReader) styles(x *xmlReader) error {
	return x.each(func(e *xml.StartElement) error {
		if e.Name.Local == "style" && attr(e, "family") == "paragraph" && len(o.parents) < o.lim.Blocks {
			o.parents[attr(e, "name")] = attr(e, "parent-style-name")
		}
		return nil
	}, nil)
}

// isTitle reports whether a paragraph's style is the one of titles.
func (o *openReader) isTitle(style string) bool {
	return style == "Title" || o.parents[style] == "Title"
}

// body reads blocks. Elements that are unknown may have some.
func (o *openReader) body(x *xmlReader) error { return o.blocks(x, document.Paragraph) }

func (o *openReader) blocks(x *xmlReader, kind document.Kind) error {
	return x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "p":
			if o.isTitle(attr(e, "style-name")) {
				return o.paragraph(x, document.Heading, 1)
			}
			return o.paragraph(x, kind, 0)
		case "h":
			level, err := strconv.Atoi(attr(e, "outline-level"))
			if err != nil {
				level = 1
			}
			return o.paragraph(x, document.Heading, min(max(level, 1), 6))
		case "list-item", "list-header":
			return o.blocks(x, document.Item)
		case "table":
			return o.table(x, e)
		case "page":
			return o.slide(x)
		case "frame", "custom-shape":
			return o.shape(x, e, kind)
		case "notes":
			return o.readNotes(x)
		case "annotation":
			return o.readNote(x)
		case "object":
			if err := o.object(attr(e, "href")); err != nil {
				return err
			}
			pending := o.pending
			o.pending = nil
			o.emit(pending...)
			return nil
		case "tracked-changes", "forms", "sequence-decls", "variable-decls", "user-field-decls", "desc", "title",
			"event-listeners", "annotation-end", "header-decl", "footer-decl", "date-time-decl", "shapes",
			"calculation-settings", "content-validations", "named-expressions", "database-ranges", "dde-links",
			"alphabetical-index-source", "table-of-content-source", "bibliography-source", "illustration-index-source",
			"table-index-source", "object-index-source", "user-index-source":
			if e.Name.Local == "shapes" { // on a sheet
				return o.blocks(x, kind)
			}
			return nil
		case "a": // around a frame
			if err := o.link(o.target(e)); err != nil {
				return err
			}
		}
		return o.blocks(x, kind)
	}, nil)
}

// target returns the URL of an xlink:href. One that is relative is relative to the folder in the archive.
func (o *openReader) target(e *xml.StartElement) string {
	return strings.TrimPrefix(attr(e, "href"), "../")
}

// paragraph reads a text:p or text:h.
func (o *openReader) paragraph(x *xmlReader, kind document.Kind, level int) error {
	err := o.inline(x)
	if o.noted {
		kind, level = document.Note, 0
	}
	if e := o.add(o.p.block(kind, level)); err == nil {
		err = e
	}
	o.emit(o.pending...)
	o.pending = nil
	return err
}

func (o *openReader) inline(x *xmlReader) error {
	return x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "s", "tab", "line-break":
			o.p.space = true
		case "a":
			o.p.beginLink(o.target(e))
			err := o.inline(x)
			o.p.endLink()
			return err
		case "note":
			return o.apart(func() error {
				return x.find(func(*xml.StartElement) error { return o.asNote(x) }, "note-body")
			})
		case "annotation":
			return o.apart(func() error { return o.readNote(x) })
		case "frame", "custom-shape", "text-box", "g", "rect", "line", "ellipse", "polygon", "path", "control":
			return o.apart(func() error { return o.shape(x, e, document.Paragraph) })
		case "page-number", "note-ref", "ruby-text", "tracked-changes", "script", "hidden-text", "event-listeners":
			if e.Name.Local == "note-ref" {
				return o.inline(x)
			}
			return nil
		default:
			return o.inline(x)
		}
		return nil
	}, o.p.write)
}

// apart reads blocks that come after the paragraph that is read.
func (o *openReader) apart(read func() error) error {
	outer, pending := o.p, o.pending
	o.p, o.pending = paragraph{}, nil
	blocks, err := o.collect(read)
	o.p, o.pending = outer, append(pending, blocks...)
	return err
}

// asNote reads blocks as notes.
func (o *openReader) asNote(x *xmlReader) error {
	outer := o.noted
	o.noted = true
	err := o.blocks(x, document.Note)
	o.noted = outer
	return err
}

// readNote reads an office:annotation. Its author and date are no text.
func (o *openReader) readNote(x *xmlReader) error {
	return x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "p":
			return o.paragraph(x, document.Note, 0)
		case "list":
			return o.asNote(x)
		}
		return nil
	}, nil)
}

// slide reads a draw:page.
func (o *openReader) slide(x *xmlReader) error {
	if o.page >= o.lim.Pages {
		return document.Errorf(document.TooLarge, "the document has more than %d slides", o.lim.Pages)
	}
	o.page++
	return o.body(x)
}

// readNotes reads the presentation:notes of a slide.
func (o *openReader) readNotes(x *xmlReader) error {
	return x.each(func(e *xml.StartElement) error {
		if e.Name.Local == "frame" {
			return o.asNote(x)
		}
		return nil
	}, nil)
}

// shape reads the texts of a frame or shape. The frame of a slide's title is a heading.
func (o *openReader) shape(x *xmlReader, e *xml.StartElement, kind document.Kind) error {
	if attr(e, "class") != "title" || attr(e, "placeholder") == "true" {
		return o.blocks(x, kind)
	}
	blocks, err := o.collect(func() error { return o.blocks(x, document.Paragraph) })
	for i := range blocks {
		if blocks[i].Kind == document.Paragraph && !o.noted {
			blocks[i].Kind, blocks[i].Level = document.Heading, 2
		}
	}
	o.emit(blocks...)
	return err
}

// table reads a table:table. In a spreadsheet it is a sheet.
func (o *openReader) table(x *xmlReader, e *xml.StartElement) error {
	if o.doc.Format == document.ODS && o.into == nil && !o.inside {
		if o.page >= o.lim.Pages {
			return document.Errorf(document.TooLarge, "the document has more than %d sheets", o.lim.Pages)
		}
		o.page++
		if err := o.add(document.Block{Kind: document.Heading, Level: 2, Text: attr(e, "name")}); err != nil {
			return err
		}
	}
	outer := o.p
	o.p = paragraph{}
	err := o.rows(x)
	o.p = outer
	return err
}

func (o *openReader) rows(x *xmlReader) error {
	return x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "table-row":
			return o.tableRow(x)
		case "table-rows", "table-header-rows", "table-row-group":
			return o.rows(x)
		case "shapes":
			return o.body(x)
		}
		return nil
	}, nil)
}

// tableRow reads a row once, however often it is repeated. Empty cells at its end are left out.
func (o *openReader) tableRow(x *xmlReader) error {
	var cells [][]document.Block
	empty := 0
	err := x.each(func(e *xml.StartElement) error {
		name := e.Name.Local
		if name != "table-cell" && name != "covered-table-cell" {
			return nil
		}
		repeated, _ := strconv.Atoi(attr(e, "number-columns-repeated"))
		repeated = min(max(repeated, 1), maxPadding)
		blocks, err := o.collect(func() error { return o.body(x) })
		if len(blocks) == 0 {
			empty += repeated
			return err
		}
		if empty <= maxPadding {
			cells = append(cells, make([][]document.Block, empty)...)
		}
		empty = 0
		for i := range repeated {
			if i > 0 {
				for _, b := range blocks { // counts
					if o.text += len(b.Text) + 1; o.text > o.lim.Text {
						return document.Errorf(document.TooLarge, "the document has more than %d bytes of text", o.lim.Text)
					}
				}
			}
			cells = append(cells, blocks)
		}
		return err
	}, nil)
	if o.doc.Format == document.ODS && len(cells) == 1 {
		cells = append(cells, nil) // a row of a sheet, not layout
	}
	if len(cells) > 0 {
		o.row(cells)
	}
	return err
}
