package office

import (
	"encoding/xml"
	"strconv"
	"strings"

	"kumo/internal/content/document"
)

// A workbook reads an xlsx file.
type workbook struct {
	*reader
	shared   []string
	formats  []numberFormat // of cells by their style
	date1904 bool
	rels     map[string]rel // of the sheet that is read
	rows     map[int]int    // block of a row of the sheet
}

// Limits of shared strings: their number for each block that is allowed, and their bytes for each byte of text.
const (
	maxShared     = 5
	maxSharedText = 4
)

// maxPadding is how many empty cells are kept in a row before a cell.
const maxPadding = 64

// workbook reads an xlsx file.
func (r *reader) workbook(main string) error {
	rels, err := r.rels(main)
	if err != nil {
		return err
	}
	w := &workbook{reader: r}
	if err := r.optional(r.xmlIf(related(rels, "styles"), w.readStyles)); err != nil {
		return err
	}
	if err := r.optional(r.xmlIf(related(rels, "sharedStrings"), w.readShared)); err != nil {
		r.problem(err) // cells that have other strings can be read
	}
	type sheet struct{ name, part string }
	var sheets []sheet
	err = r.xml(main, func(x *xmlReader, _ *xml.StartElement) error {
		return x.find(func(e *xml.StartElement) error {
			if e.Name.Local == "workbookPr" {
				w.date1904 = attr(e, "date1904") == "1" || attr(e, "date1904") == "true"
			} else if len(sheets) <= r.lim.Pages {
				sheets = append(sheets, sheet{attr(e, "name"), rels[relation(e, "id")].target})
			}
			return nil
		}, "sheet", "workbookPr")
	})
	r.doc.Pages = len(sheets)
	for i, s := range sheets {
		if i == r.lim.Pages {
			return document.Errorf(document.TooLarge, "the document has more than %d sheets", r.lim.Pages)
		}
		r.page = i + 1
		if err := r.add(document.Block{Kind: document.Heading, Level: 2, Text: s.name}); err != nil {
			return err
		}
		if err := r.optional(w.sheet(s.part)); err != nil {
			return err
		}
	}
	return err
}

// readShared reads the strings that cells share.
func (w *workbook) readShared(x *xmlReader, _ *xml.StartElement) error {
	size := 0
	return x.each(func(e *xml.StartElement) error {
		if e.Name.Local != "si" {
			return nil
		}
		s, err := richText(x)
		if size += len(s); size > maxSharedText*w.lim.Text || len(w.shared) >= maxShared*w.lim.Blocks {
			return document.Errorf(document.TooLarge, "the workbook has more than %d shared strings, or %d bytes of them",
				maxShared*w.lim.Blocks, maxSharedText*w.lim.Text)
		}
		w.shared = append(w.shared, s)
		return err
	}, nil)
}

// richText reads the text of a string item without its phonetic hints.
func richText(x *xmlReader) (string, error) {
	var p paragraph
	var inside func(e *xml.StartElement) error
	inside = func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "t":
			return x.each(nil, p.write)
		case "r":
			return x.each(inside, nil)
		}
		return nil
	}
	err := x.each(inside, nil)
	return string(p.text), err
}

// sheet reads a sheet: its cells, links, comments and shapes.
func (w *workbook) sheet(part string) (err error) {
	if w.rels, err = w.reader.rels(part); err != nil {
		return err
	}
	w.rows = map[int]int{}
	err = w.xmlIf(part, func(x *xmlReader, _ *xml.StartElement) error {
		number := 0
		return x.find(func(e *xml.StartElement) error {
			if e.Name.Local == "hyperlink" {
				return w.hyperlink(attr(e, "ref"), w.rels[relation(e, "id")].url())
			}
			number++
			if n, err := strconv.Atoi(attr(e, "r")); err == nil {
				number = n
			}
			return w.row(x, number)
		}, "row", "hyperlink")
	})
	if err != nil {
		return err
	}
	if part := related(w.rels, "comments"); part != "" {
		err := w.xmlIf(part, func(x *xmlReader, _ *xml.StartElement) error {
			return x.find(func(*xml.StartElement) error {
				s, err := richText(x)
				if err != nil {
					return err
				}
				return w.add(document.Block{Kind: document.Note, Text: s})
			}, "text")
		})
		if err := w.optional(err); err != nil {
			return err
		}
	}
	if part := related(w.rels, "drawing"); part != "" {
		rels, err := w.reader.rels(part)
		if err != nil {
			return err
		}
		d := drawing{reader: w.reader, rels: rels}
		return w.optional(w.xmlIf(part, d.root))
	}
	return nil
}

// row reads a row. Empty cells between others are kept, so that columns stay columns.
func (w *workbook) row(x *xmlReader, number int) error {
	row := document.Block{Kind: document.Row}
	size, column := 0, 0
	err := x.each(func(e *xml.StartElement) error {
		if e.Name.Local != "c" {
			return nil
		}
		if n := columnOf(attr(e, "r")); n > 0 {
			column = n
		} else {
			column++
		}
		text, target, err := w.cell(x, e)
		if text == "" && target == "" {
			return err
		}
		if gap := column - 1 - len(row.Cells); gap > 0 && gap <= maxPadding {
			row.Cells = append(row.Cells, make([]string, gap)...)
		}
		row.Cells = append(row.Cells, text)
		if target = webLink(target); target != "" {
			row.Links = append(row.Links, document.Link{Text: text, URL: target})
		}
		if size += len(text) + 1; size > w.lim.Text {
			return document.Errorf(document.TooLarge, "a row has more than %d bytes of text", w.lim.Text)
		}
		return err
	}, nil)
	before := len(w.doc.Blocks)
	if e := w.add(row); err == nil {
		err = e
	}
	if len(w.doc.Blocks) > before {
		w.rows[number] = before
	}
	return err
}

// columnOf returns the number of a cell's column, from 1; 0 if the reference is none.
func columnOf(ref string) (n int) {
	for _, c := range []byte(ref) {
		if c < 'A' || c > 'Z' {
			break
		}
		if n = n*26 + int(c-'A') + 1; n > 1<<14 {
			return 0
		}
	}
	return n
}

// cell returns a cell's text, and the URL of its formula HYPERLINK.
func (w *workbook) cell(x *xmlReader, c *xml.StartElement) (text, target string, err error) {
	kind := attr(c, "t")
	err = x.each(func(e *xml.StartElement) (err error) {
		switch e.Name.Local {
		case "v":
			text, err = x.text(w.lim.Text)
		case "is":
			text, err = richText(x)
		case "f":
			var formula string
			formula, err = x.text(maxURL)
			target = formulaLink(formula)
		}
		return err
	}, nil)
	switch kind {
	case "s":
		i, e := strconv.Atoi(text)
		if text = ""; e == nil && i >= 0 && i < len(w.shared) {
			text = w.shared[i]
		}
	case "b":
		text = map[string]string{"1": "TRUE", "0": "FALSE"}[text]
	case "", "n":
		text = w.number(text, attr(c, "s"))
	}
	return text, target, err
}

// formulaLink returns the URL in a formula HYPERLINK("url", …), if it is written out.
func formulaLink(formula string) string {
	_, rest, is := strings.Cut(formula, `HYPERLINK("`)
	target, _, closed := strings.Cut(rest, `"`)
	if !is || !closed {
		return ""
	}
	return target
}

// hyperlink adds the link of a cell, or of the first cell of a range.
func (w *workbook) hyperlink(ref, target string) error {
	if target = webLink(target); target == "" {
		return nil
	}
	ref, _, _ = strings.Cut(ref, ":")
	digits := strings.TrimLeft(ref, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	number, err := strconv.Atoi(digits)
	at, known := w.rows[number]
	if err != nil || !known {
		return w.link(target)
	}
	b := &w.doc.Blocks[at]
	l := document.Link{URL: target}
	if column := columnOf(ref); column > 0 && column <= len(b.Cells) {
		l.Text = b.Cells[column-1]
	}
	if w.links++; w.links > w.lim.Links {
		return document.Errorf(document.TooLarge, "the document has more than %d links", w.lim.Links)
	}
	b.Links = append(b.Links, l)
	return nil
}
