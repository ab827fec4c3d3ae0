package office

import (
	"encoding/xml"
	"slices"

	"kumo/internal/content/document"
)

// slides reads a pptx file.
func (r *reader) slides(main string) error {
	rels, err := r.rels(main)
	if err != nil {
		return err
	}
	var parts []string
	err = r.xml(main, func(x *xmlReader, _ *xml.StartElement) error {
		return x.find(func(e *xml.StartElement) error {
			if part := rels[relation(e, "id")].target; len(parts) <= r.lim.Pages {
				parts = append(parts, part)
			}
			return nil
		}, "sldId")
	})
	r.doc.Pages = len(parts)
	for i, part := range parts {
		if i == r.lim.Pages {
			return document.Errorf(document.TooLarge, "the document has more than %d slides", r.lim.Pages)
		}
		r.page = i + 1
		if err := r.optional(r.slide(part)); err != nil {
			return err
		}
	}
	return err
}

// slide reads a slide: its title, the other shapes, its comments and the speaker's notes.
func (r *reader) slide(part string) error {
	rels, err := r.rels(part)
	if err != nil {
		return err
	}
	d := drawing{reader: r, rels: rels, slide: true}
	blocks, err := r.collect(func() error { return r.xml(part, d.root) })
	if err != nil {
		return err
	}
	slices.SortStableFunc(blocks, func(a, b document.Block) int { return rankOf(a) - rankOf(b) })
	r.emit(blocks...)
	for _, kind := range []string{"comments", "notesSlide"} {
		notes := related(rels, kind)
		if notes == "" {
			continue
		}
		notesRels, err := r.rels(notes)
		if err != nil {
			return err
		}
		d := drawing{reader: r, rels: notesRels, slide: true, note: true}
		if err := r.optional(r.xmlIf(notes, d.root)); err != nil {
			return err
		}
	}
	return nil
}

// rankOf sorts headings first.
func rankOf(b document.Block) int {
	if b.Kind == document.Heading {
		return 0
	}
	return 1
}

// A drawing reads the texts of DrawingML: of a slide, or of shapes on a sheet.
type drawing struct {
	*reader
	rels  map[string]rel
	slide bool // shapes are placeholders of a slide
	note  bool // all texts are notes
}

// A shape is what is known of a shape when its text is read.
type shape struct {
	kind string // of a placeholder; "" for other shapes
	link string
}

func (d *drawing) root(x *xmlReader, _ *xml.StartElement) error { return d.inside(x, &shape{}) }

// inside reads the texts in the current element.
func (d *drawing) inside(x *xmlReader, s *shape) error {
	return x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "sp", "cxnSp", "pic", "graphicFrame":
			s := &shape{}
			err := d.inside(x, s)
			if s.link != "" && err == nil {
				err = d.link(s.link)
			}
			return err
		case "ph":
			if s.kind = attr(e, "type"); s.kind == "" {
				s.kind = "obj"
			}
			return nil
		case "hlinkClick":
			s.link = d.rels[relation(e, "id")].url()
			return nil
		case "AlternateContent":
			return alternate(x, func() error { return d.inside(x, s) })
		case "tbl":
			return d.table(x)
		case "p":
			return d.paragraph(x, s)
		case "relIds":
			return d.optional(d.diagram(d.rels[relation(e, "dm")]))
		case "chart":
			return d.optional(d.chart(d.rels[relation(e, "id")]))
		case "text": // of a comment
			if d.note {
				text, err := x.text(d.lim.Text)
				if err != nil {
					return err
				}
				return d.add(document.Block{Kind: document.Note, Text: text})
			}
		}
		return d.inside(x, s)
	}, nil)
}

// diagram reads the texts of SmartArt.
func (r *reader) diagram(data rel) error {
	if data.external {
		return nil
	}
	d := drawing{reader: r}
	return r.xmlIf(data.target, d.root)
}

// chart reads the titles and names of a chart.
func (r *reader) chart(part rel) error {
	if part.external {
		return nil
	}
	d := drawing{reader: r}
	return r.xmlIf(part.target, func(x *xmlReader, _ *xml.StartElement) error {
		seen := map[string]bool{}
		return x.find(func(e *xml.StartElement) error {
			if e.Name.Local != "strCache" {
				return d.inside(x, &shape{})
			}
			return x.find(func(*xml.StartElement) error {
				text, err := x.text(maxField)
				if err != nil || seen[text] {
					return err
				}
				seen[text] = true
				return r.add(document.Block{Text: text})
			}, "v")
		}, "rich", "strCache")
	})
}

func (d *drawing) table(x *xmlReader) error {
	return x.each(func(e *xml.StartElement) error {
		if e.Name.Local != "tr" {
			return nil
		}
		var cells [][]document.Block
		err := x.each(func(e *xml.StartElement) error {
			if e.Name.Local != "tc" {
				return nil
			}
			blocks, err := d.collect(func() error { return d.inside(x, &shape{}) })
			cells = append(cells, blocks)
			return err
		}, nil)
		d.row(cells)
		return err
	}, nil)
}

// paragraph reads an a:p.
func (d *drawing) paragraph(x *xmlReader, s *shape) error {
	var p paragraph
	kind, level := document.Paragraph, 0
	switch s.kind {
	case "title", "ctrTitle":
		kind, level = document.Heading, 2
		if s.kind == "ctrTitle" {
			level = 1
		}
	case "body", "obj":
		kind = document.Item
	case "sldNum", "dt", "ftr", "hdr":
		return nil
	}
	err := x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "pPr":
			return x.each(func(e *xml.StartElement) error {
				switch e.Name.Local {
				case "buNone":
					if kind == document.Item {
						kind = document.Paragraph
					}
				case "buChar", "buAutoNum", "buBlip":
					if kind == document.Paragraph {
						kind = document.Item
					}
				}
				return nil
			}, nil)
		case "r", "fld":
			return d.run(x, &p)
		case "br", "tab":
			p.space = true
		case "AlternateContent":
			return alternate(x, func() error { return d.run(x, &p) })
		case "m": // a formula
			return d.run(x, &p)
		}
		return nil
	}, nil)
	if d.note {
		kind, level = document.Note, 0
	}
	if e := d.add(p.block(kind, level)); err == nil {
		err = e
	}
	return err
}

func (d *drawing) run(x *xmlReader, p *paragraph) error {
	linked := false
	err := x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "rPr":
			return x.each(func(e *xml.StartElement) error {
				if e.Name.Local == "hlinkClick" {
					if target := d.rels[relation(e, "id")].url(); target != "" {
						p.beginLink(target)
						linked = true
					}
				}
				return nil
			}, nil)
		case "t":
			return x.each(nil, func(s []byte) { p.write(s) })
		case "pPr":
			return nil
		}
		return d.run(x, p)
	}, nil)
	if linked {
		p.endLink()
	}
	return err
}
