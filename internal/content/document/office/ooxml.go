package office

import (
	"encoding/xml"
	"path"
	"strconv"
	"strings"

	"kumo/internal/content/document"
)

// A rel is a relation of a part of an Office Open XML document to another part, or to a URL.
type rel struct {
	kind     string // the last element of its type, such as "hyperlink"
	target   string // an entry's name, or a URL
	external bool
}

// maxRels is how many relations of a part are read.
const maxRels = 100_000

// rels returns the relations of a part by their ids. The part "" is the archive. Parts without relations have none.
func (r *reader) rels(part string) (map[string]rel, error) {
	dir, base := path.Split(part)
	all := map[string]rel{}
	err := r.xmlIf(dir+"_rels/"+base+".rels", func(x *xmlReader, _ *xml.StartElement) error {
		return x.each(func(e *xml.StartElement) error {
			if e.Name.Local != "Relationship" {
				return nil
			}
			if len(all) == maxRels {
				return document.Errorf(document.TooLarge, "a part has more than %d relations", maxRels)
			}
			v := rel{kind: path.Base(attr(e, "Type")), target: attr(e, "Target"),
				external: strings.EqualFold(attr(e, "TargetMode"), "External")}
			if !v.external {
				v.target = resolve(part, v.target)
			}
			all[attr(e, "Id")] = v
			return nil
		}, nil)
	})
	return all, r.optional(err)
}

// related returns the target of the relation of a kind; the first by its id if there are several.
func related(rels map[string]rel, kind string) (target string) {
	first := ""
	for id, v := range rels {
		if v.kind == kind && !v.external && (first == "" || id < first) {
			first, target = id, v.target
		}
	}
	return target
}

// detectOOXML finds the main part of an Office Open XML document, and its format by the part's content type. Some
// writers declare only generic types: then the root element decides.
func (r *reader) detectOOXML() (document.Format, func() error, error) {
	rels, err := r.rels("")
	if err != nil {
		return "", nil, err
	}
	main := related(rels, "officeDocument")
	if !r.has(main) {
		for _, usual := range []string{"word/document.xml", "ppt/presentation.xml", "xl/workbook.xml"} {
			if r.has(usual) {
				main = usual
			}
		}
	}
	if main == "" {
		return "", nil, document.Errorf(document.Unsupported, "a package (OPC) that is not an office document")
	}
	if strings.HasSuffix(main, ".bin") {
		return "", nil, document.Errorf(document.Unsupported, "a binary workbook (xlsb) has no reader")
	}
	root := ""
	err = r.xml(main, func(_ *xmlReader, e *xml.StartElement) error {
		root = e.Name.Local
		return nil
	})
	if err != nil {
		return "", nil, err
	}
	format, read := document.Format(""), func(string) error { return nil }
	switch root {
	case "document":
		format, read = document.DOCX, r.word
	case "presentation":
		format, read = document.PPTX, r.slides
	case "workbook":
		format, read = document.XLSX, r.workbook
	default:
		return "", nil, document.Errorf(document.Unsupported, "an office document of the unknown kind %s", clip(root))
	}
	return format, func() error {
		for _, v := range rels {
			if v.external {
				continue
			}
			if v.kind == "core-properties" || v.kind == "extended-properties" {
				if err := r.optional(r.xmlIf(v.target, r.properties)); err != nil {
					return err
				}
			}
		}
		return read(main)
	}, nil
}

// properties reads docProps/core.xml or docProps/app.xml.
func (r *reader) properties(x *xmlReader, _ *xml.StartElement) error {
	return x.each(func(e *xml.StartElement) error {
		d := &r.doc
		name := e.Name.Local
		switch name {
		case "title", "creator", "subject", "description", "language", "rights", "created", "modified", "keywords",
			"Pages", "category":
		default:
			return nil
		}
		v, err := x.text(maxField)
		if err != nil || v == "" {
			return err
		}
		switch name {
		case "title":
			d.Title = v
		case "creator":
			d.Author = addName(d.Author, v)
		case "description":
			d.Description = v
		case "language":
			d.Lang = v
		case "rights":
			d.Rights = v
		case "created":
			d.Published = date(v)
		case "modified":
			d.Modified = date(v)
		case "Pages":
			if n, err := strconv.Atoi(v); err == nil && n > 0 && n < 1e6 && d.Format == document.DOCX {
				d.Pages = n
			}
		default:
			r.property(name, v)
		}
		return nil
	}, nil)
}

// alternate reads a mc:AlternateContent: the first of its choices, or the fallback if there is none.
func alternate(x *xmlReader, read func() error) error {
	done := false
	return x.each(func(e *xml.StartElement) error {
		if done || e.Name.Local != "Choice" && e.Name.Local != "Fallback" {
			return nil
		}
		done = true
		return read()
	}, nil)
}

// isOn returns the value of an on/off element: it is on unless it says otherwise.
func isOn(e *xml.StartElement) bool {
	switch attr(e, "val") {
	case "0", "false", "off":
		return false
	}
	return true
}
