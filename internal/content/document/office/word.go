package office

import (
	"encoding/xml"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"kumo/internal/content/document"
)

// A wordStyle is a paragraph style of a docx file.
type wordStyle struct {
	basedOn string
	level   int // of a heading; 0: not stated; -1: body text
	list    bool
}

// A word reads the main part of a docx file.
type word struct {
	*reader
	styles map[string]wordStyle
	notes  map[string][]document.Block // "footnote 2": blocks
	rels   map[string]rel              // of the part that is read

	p       paragraph
	pending []document.Block // text boxes and notes of the paragraph or row that is read
	fields  []field
}

// A field is a complex field of a docx file that is open.
type field struct {
	code   []byte // its instruction
	result bool   // the instruction has ended
	link   bool
}

// maxFields and maxCode bound open fields, and the bytes of an instruction.
const (
	maxFields = 100
	maxCode   = 16 << 10
)

// word reads a docx file.
func (r *reader) word(main string) error {
	rels, err := r.rels(main)
	if err != nil {
		return err
	}
	w := &word{reader: r, notes: map[string][]document.Block{}, styles: map[string]wordStyle{}}
	if err := r.optional(r.xmlIf(related(rels, "styles"), w.readStyles)); err != nil {
		return err
	}
	for _, kind := range []string{"footnotes", "endnotes", "comments"} {
		part := related(rels, kind)
		if part == "" {
			continue
		}
		if w.rels, err = r.rels(part); err != nil {
			return err
		}
		if err := r.optional(r.xmlIf(part, w.readNotes)); err != nil {
			return err
		}
	}
	w.rels = rels
	return r.xml(main, func(x *xmlReader, _ *xml.StartElement) error {
		return x.each(func(e *xml.StartElement) error {
			if e.Name.Local != "body" {
				return nil
			}
			err := w.blocks(x)
			if err != nil { // the text up to the error
				_ = w.flush(document.Paragraph, 0)
			}
			return err
		}, nil)
	})
}

func (w *word) readStyles(x *xmlReader, _ *xml.StartElement) error {
	return x.each(func(e *xml.StartElement) error {
		if e.Name.Local != "style" || attr(e, "type") != "paragraph" || len(w.styles) >= w.lim.Blocks {
			return nil
		}
		id, style := attr(e, "styleId"), wordStyle{}
		err := x.each(func(e *xml.StartElement) error {
			switch e.Name.Local {
			case "name":
				name := strings.ToLower(attr(e, "val"))
				if n, is := strings.CutPrefix(name, "heading "); is && style.level == 0 {
					style.level = headingLevel(n)
				} else if name == "title" {
					style.level = 1
				}
			case "basedOn":
				style.basedOn = attr(e, "val")
			case "pPr":
				return x.each(func(e *xml.StartElement) error {
					switch e.Name.Local {
					case "outlineLvl":
						style.level = outlineLevel(e)
					case "numPr":
						style.list = true
					}
					return nil
				}, nil)
			}
			return nil
		}, nil)
		w.styles[id] = style
		return err
	}, nil)
}

func headingLevel(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 1 {
		return 0
	}
	return min(n, 6)
}

// outlineLevel returns the heading level of a w:outlineLvl, -1 for body text.
func outlineLevel(e *xml.StartElement) int {
	n, err := strconv.Atoi(attr(e, "val"))
	switch {
	case err != nil || n < 0:
		return 0
	case n >= 9:
		return -1
	}
	return min(n+1, 6)
}

// maxStyles is the longest chain of styles that are based on each other.
const maxStyles = 20

// style returns the properties of a style with those that it inherits.
func (w *word) style(id string) (s wordStyle) {
	for range maxStyles {
		next, known := w.styles[id]
		if !known {
			break
		}
		if s.level == 0 {
			s.level = next.level
		}
		s.list = s.list || next.list
		id = next.basedOn
	}
	return s
}

// readNotes reads footnotes, endnotes or comments.
func (w *word) readNotes(x *xmlReader, _ *xml.StartElement) error {
	return x.each(func(e *xml.StartElement) error {
		name := e.Name.Local
		switch t := attr(e, "type"); {
		case name != "footnote" && name != "endnote" && name != "comment":
			return nil
		case t != "" && t != "normal": // separators
			return nil
		}
		id := name + " " + attr(e, "id")
		blocks, err := w.collect(func() error { return w.blocks(x) })
		if err != nil {
			return err
		}
		for i := range blocks {
			if blocks[i].Kind != document.Row {
				blocks[i].Kind, blocks[i].Level = document.Note, 0
			}
		}
		w.notes[id] = append(w.notes[id], blocks...)
		return nil
	}, nil)
}

// blocks reads the paragraphs and tables in the current element.
func (w *word) blocks(x *xmlReader) error {
	return x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "p":
			return w.paragraph(x)
		case "tbl":
			return w.table(x)
		case "AlternateContent":
			return alternate(x, func() error { return w.blocks(x) })
		case "sdt", "sdtContent", "ins", "moveTo", "smartTag", "customXml", "txbxContent":
			return w.blocks(x)
		}
		return nil
	}, nil)
}

// paragraph reads a w:p. Text boxes in it come after it.
func (w *word) paragraph(x *xmlReader) error {
	kind, level := document.Paragraph, 0
	err := w.inline(x, func(e *xml.StartElement) error {
		kind, level = document.Paragraph, 0
		err := w.paragraphProperties(x, &kind, &level)
		if level > 0 {
			kind = document.Heading
		}
		return err
	})
	if err != nil {
		return err
	}
	return w.flush(kind, level)
}

func (w *word) paragraphProperties(x *xmlReader, kind *document.Kind, level *int) error {
	direct := 0
	err := x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "pStyle":
			s := w.style(attr(e, "val"))
			*level = max(s.level, 0)
			if s.list {
				*kind = document.Item
			}
		case "outlineLvl":
			direct = outlineLevel(e)
		case "numPr":
			*kind = document.Item
			return x.each(func(e *xml.StartElement) error {
				if e.Name.Local == "numId" && attr(e, "val") == "0" {
					*kind = document.Paragraph
				}
				return nil
			}, nil)
		}
		return nil
	}, nil)
	if direct != 0 {
		*level = max(direct, 0)
	}
	return err
}

// flush adds the paragraph, and what comes after it.
func (w *word) flush(kind document.Kind, level int) error {
	open := w.p.url
	err := w.add(w.p.block(kind, level))
	if open != "" { // a field that spans paragraphs
		w.p.beginLink(open)
	}
	w.emit(w.pending...)
	w.pending = nil
	return err
}

// inline reads runs and the elements around them. It calls properties for w:pPr.
func (w *word) inline(x *xmlReader, properties func(e *xml.StartElement) error) error {
	return x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "pPr":
			if properties != nil {
				return properties(e)
			}
		case "r":
			return w.run(x)
		case "hyperlink":
			return w.linked(w.rels[relation(e, "id")].url(), func() error { return w.inline(x, nil) })
		case "fldSimple":
			return w.linked(fieldLink(attr(e, "instr")), func() error { return w.inline(x, nil) })
		case "del", "moveFrom", "rPr", "sdtPr", "sdtEndPr":
			return nil
		case "commentReference", "commentRangeStart":
			w.queueNote("comment", e)
		case "AlternateContent":
			return alternate(x, func() error { return w.inline(x, nil) })
		case "t":
			return w.math(x) // m:t of a formula is in m:r
		case "p": // of a damaged file
			return w.paragraph(x)
		default:
			return w.inline(x, nil)
		}
		return nil
	}, nil)
}

func (w *word) math(x *xmlReader) error { return x.each(nil, w.p.write) }

// linked reads something as the text of a link; "" is no link.
func (w *word) linked(target string, read func() error) error {
	if target != "" {
		w.p.beginLink(target)
		defer w.p.endLink()
	}
	return read()
}

// url returns the target if it is a URL.
func (v rel) url() string {
	if !v.external {
		return ""
	}
	return v.target
}

// run reads a w:r.
func (w *word) run(x *xmlReader) error {
	hidden := false
	return x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "rPr":
			return x.each(func(e *xml.StartElement) error {
				if e.Name.Local == "vanish" {
					hidden = isOn(e)
				}
				return nil
			}, nil)
		case "t":
			if !hidden && !w.inCode() {
				return x.each(nil, w.p.write)
			}
		case "tab", "br", "cr", "ptab":
			w.p.space = true
		case "noBreakHyphen":
			w.p.write([]byte("-"))
		case "sym":
			w.symbol(e)
		case "fldChar":
			w.field(attr(e, "fldCharType"))
		case "instrText":
			return x.each(nil, func(s []byte) {
				if n := len(w.fields); n > 0 && len(w.fields[n-1].code) < maxCode {
					w.fields[n-1].code = append(w.fields[n-1].code, s...)
				}
			})
		case "footnoteReference":
			w.queueNote("footnote", e)
		case "endnoteReference":
			w.queueNote("endnote", e)
		case "commentReference":
			w.queueNote("comment", e)
		case "ruby":
			return x.each(func(e *xml.StartElement) error {
				if e.Name.Local == "rubyBase" {
					return w.inline(x, nil)
				}
				return nil
			}, nil)
		case "AlternateContent":
			return alternate(x, func() error { return w.run(x) })
		case "drawing", "pict", "object":
			return w.drawing(x)
		}
		return nil
	}, nil)
}

// symbol adds a character that is given by its code. Those of fonts of symbols are arrows and bullets: a space.
func (w *word) symbol(e *xml.StartElement) {
	n, err := strconv.ParseUint(attr(e, "char"), 16, 32)
	r := rune(n)
	if err != nil || n > utf8.MaxRune || !utf8.ValidRune(r) || unicode.Is(unicode.Co, r) || unicode.IsControl(r) {
		w.p.space = true
		return
	}
	w.p.write(utf8.AppendRune(nil, r))
}

// queueNote puts a note after the paragraph that refers to it first.
func (w *word) queueNote(kind string, e *xml.StartElement) {
	id := kind + " " + attr(e, "id")
	w.pending = append(w.pending, w.notes[id]...)
	delete(w.notes, id)
}

// inCode reports whether the instruction of a field is read.
func (w *word) inCode() bool {
	return slices.ContainsFunc(w.fields, func(f field) bool { return !f.result })
}

// field reads a w:fldChar.
func (w *word) field(kind string) {
	n := len(w.fields)
	switch {
	case kind == "begin" && n < maxFields:
		w.fields = append(w.fields, field{})
	case n == 0:
	case kind == "separate":
		f := &w.fields[n-1]
		f.result = true
		if target := fieldLink(string(f.code)); target != "" {
			f.link = true
			w.p.beginLink(target)
		}
	case kind == "end":
		if w.fields[n-1].link {
			w.p.endLink()
		}
		w.fields = w.fields[:n-1]
	}
}

// fieldLink returns the URL of a HYPERLINK field.
func fieldLink(code string) string {
	rest, is := strings.CutPrefix(strings.TrimSpace(code), "HYPERLINK")
	if rest = strings.TrimSpace(rest); !is || rest == "" || rest[0] == '\\' {
		return ""
	}
	if quoted, is := strings.CutPrefix(rest, `"`); is {
		rest, _, _ = strings.Cut(quoted, `"`)
		return rest
	}
	return strings.Fields(rest)[0]
}

// drawing reads the text boxes, diagrams and links of a drawing. They come after the paragraph.
func (w *word) drawing(x *xmlReader) error {
	outer, fields, pending := w.p, w.fields, w.pending
	w.p, w.fields, w.pending = paragraph{}, nil, nil
	blocks, err := w.collect(func() error { return w.drawn(x) })
	w.p, w.fields, w.pending = outer, fields, append(pending, blocks...)
	return err
}

func (w *word) drawn(x *xmlReader) error {
	return x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "txbxContent":
			return w.blocks(x)
		case "AlternateContent":
			return alternate(x, func() error { return w.drawn(x) })
		case "hlinkClick":
			return w.link(w.rels[relation(e, "id")].url())
		case "relIds":
			return w.optional(w.diagram(w.rels[relation(e, "dm")]))
		case "chart":
			return w.optional(w.chart(w.rels[relation(e, "id")]))
		case "textpath": // WordArt
			return w.add(document.Block{Text: strings.Join(strings.Fields(attr(e, "string")), " ")})
		}
		return w.drawn(x)
	}, nil)
}

// table reads a w:tbl.
func (w *word) table(x *xmlReader) error {
	outer := w.p
	w.p = paragraph{}
	defer func() { w.p = outer }()
	return w.rows(x)
}

func (w *word) rows(x *xmlReader) error {
	return x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "tr":
			var cells [][]document.Block
			if err := w.cells(x, &cells); err != nil {
				for _, c := range cells {
					w.emit(c...)
				}
				return err
			}
			w.row(cells)
		case "sdt", "sdtContent", "ins", "customXml":
			return w.rows(x)
		}
		return nil
	}, nil)
}

// cells reads the cells of a row. A deleted row has none.
func (w *word) cells(x *xmlReader, cells *[][]document.Block) error {
	deleted := false
	err := x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "trPr":
			return x.each(func(e *xml.StartElement) error {
				deleted = deleted || e.Name.Local == "del"
				return nil
			}, nil)
		case "tc":
			blocks, err := w.collect(func() error { return w.blocks(x) })
			*cells = append(*cells, blocks)
			return err
		case "sdt", "sdtContent", "ins", "customXml":
			return w.cells(x, cells)
		}
		return nil
	}, nil)
	if deleted {
		*cells = nil
	}
	return err
}
