package office

import (
	"encoding/xml"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"kumo/internal/content/document"
	"kumo/internal/content/fields/tree"
	"kumo/internal/content/parse"
)

// An epub reads an e-book.
type epub struct {
	*reader
	opf    string             // name of the package document
	items  map[string]opfItem // of the manifest, by id
	spine  []string           // ids
	parser *tree.Parser
	p      paragraph
}

type opfItem struct{ part, mediaType string }

const (
	maxItems   = 50_000   // of a manifest
	maxChapter = 16 << 20 // bytes
)

// epub reads an e-book.
func (r *reader) epub() error {
	b := &epub{reader: r, items: map[string]opfItem{}, parser: tree.New(0)}
	err := r.xml("META-INF/container.xml", func(x *xmlReader, _ *xml.StartElement) error {
		return x.find(func(e *xml.StartElement) error {
			if b.opf == "" {
				b.opf = resolve("", attr(e, "full-path"))
			}
			return nil
		}, "rootfile")
	})
	if err != nil {
		return err
	}
	encrypted := map[string]bool{}
	if err := r.optional(r.xmlIf("META-INF/encryption.xml", readEncrypted(encrypted))); err != nil {
		return err
	}
	if err := r.xml(b.opf, b.packageDocument); err != nil {
		return err
	}
	done := map[string]bool{} // some books name a chapter for each of its sections
	for _, id := range b.spine {
		item, known := b.items[id]
		if !known || done[item.part] || item.mediaType != "" && !strings.Contains(item.mediaType, "html") &&
			!strings.Contains(item.mediaType, "dtbook") {
			continue
		}
		if r.page >= r.lim.Pages {
			return document.Errorf(document.TooLarge, "the book has more than %d chapters", r.lim.Pages)
		}
		done[item.part] = true
		r.page++
		r.doc.Pages = r.page
		if encrypted[item.part] {
			r.problem(document.Errorf(document.Encrypted, "the book has digital rights management"))
			continue
		}
		if err := r.optional(b.chapter(item.part)); err != nil {
			return err
		}
	}
	return nil
}

// readEncrypted returns a function that reads the names of entries that are encrypted. Fonts that are only obfuscated
// are not.
func readEncrypted(names map[string]bool) func(x *xmlReader, _ *xml.StartElement) error {
	return func(x *xmlReader, _ *xml.StartElement) error {
		return x.find(func(*xml.StartElement) error {
			obfuscated := false
			name := ""
			err := x.find(func(e *xml.StartElement) error {
				if e.Name.Local == "EncryptionMethod" {
					a := attr(e, "Algorithm")
					obfuscated = strings.Contains(a, "idpf.org") || strings.Contains(a, "ns.adobe.com")
				} else {
					name = resolve("", attr(e, "URI"))
				}
				return nil
			}, "EncryptionMethod", "CipherReference")
			if !obfuscated && len(names) < maxItems {
				names[name] = true
			}
			return err
		}, "EncryptedData")
	}
}

// packageDocument reads the OPF file.
func (b *epub) packageDocument(x *xmlReader, _ *xml.StartElement) error {
	return x.each(func(e *xml.StartElement) error {
		switch e.Name.Local {
		case "metadata":
			return b.metadata(x)
		case "manifest":
			return x.each(func(e *xml.StartElement) error {
				if len(b.items) >= maxItems {
					return document.Errorf(document.TooLarge, "the book has more than %d files", maxItems)
				}
				b.items[attr(e, "id")] = opfItem{resolve(b.opf, attr(e, "href")), attr(e, "media-type")}
				return nil
			}, nil)
		case "spine":
			return x.each(func(e *xml.StartElement) error {
				if len(b.spine) < maxItems {
					b.spine = append(b.spine, attr(e, "idref"))
				}
				return nil
			}, nil)
		}
		return nil
	}, nil)
}

func (b *epub) metadata(x *xmlReader) error {
	return x.each(func(e *xml.StartElement) error {
		e = &xml.StartElement{Name: e.Name, Attr: slices.Clone(e.Attr)}
		if e.Name.Local == "dc-metadata" || e.Name.Local == "x-metadata" { // of the first e-books
			return b.metadata(x)
		}
		v, err := x.text(maxField)
		if err != nil {
			return err
		}
		b.field(e, v)
		return nil
	}, nil)
}

// field sets a field of metadata.
func (b *epub) field(e *xml.StartElement, v string) {
	d := &b.doc
	name := strings.ToLower(e.Name.Local)
	if name == "meta" {
		if name = attr(e, "property"); name == "" {
			name, v = attr(e, "name"), attr(e, "content")
		}
		switch strings.ReplaceAll(strings.ToLower(name), "-", ":") {
		case "tdm:reservation":
			b.property("tdm-reservation", v)
		case "tdm:policy":
			b.property("tdm-policy", v)
		case "dcterms:modified":
			d.Modified = date(v)
		}
		return
	}
	switch name {
	case "title":
		if d.Title == "" {
			d.Title = v
		}
	case "creator":
		d.Author = addName(d.Author, v)
	case "language":
		if d.Lang == "" {
			d.Lang = v
		}
	case "description":
		d.Description = plainText(v)
	case "rights":
		d.Rights = v
	case "date":
		if attr(e, "event") == "modification" {
			d.Modified = date(v)
		} else if d.Published == "" {
			d.Published = date(v)
		}
	case "publisher", "identifier", "subject":
		b.property(name, v)
	}
}

// plainText returns a description, which may be written in HTML, as text.
func plainText(s string) string {
	if !strings.ContainsAny(s, "<&") {
		return s
	}
	return tree.New(10_000).Parse(s, false).Text(0)
}

// chapter reads an XHTML file.
func (b *epub) chapter(part string) error {
	body, err := b.bytes(part, maxChapter)
	if err != nil {
		if p, _ := document.ProblemOf(err); p != document.TooLarge {
			return err
		}
	}
	page := string(parse.XMLText(body, "application/xhtml+xml"))
	t := b.parser.Parse(page, strings.Contains(page[:min(len(page), 1024)], "http://www.w3.org/1999/xhtml"))
	if err == nil && t.Cut {
		err = document.Errorf(document.TooLarge, "entry %s has more than %d elements and texts", clip(part), tree.MaxNodes)
	}
	e := b.walk(t.Node(0), document.Paragraph, 0)
	if flushed := b.flush(document.Paragraph, 0); e == nil {
		e = flushed
	}
	if e != nil {
		return e
	}
	return err
}

func (b *epub) flush(kind document.Kind, level int) error { return b.add(b.p.block(kind, level)) }

// walk reads the blocks below a node. Text outside of paragraphs is a block of the kind.
func (b *epub) walk(n *html.Node, kind document.Kind, level int) error {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			b.p.write([]byte(c.Data))
		case html.ElementNode:
			if err := b.element(c, kind, level); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *epub) element(n *html.Node, kind document.Kind, level int) error {
	name := n.Data
	if at := strings.LastIndexByte(name, ':'); at >= 0 {
		name = name[at+1:]
	}
	switch name {
	case "head", "script", "style", "template", "rt", "rp", "title", "desc", "metadata", "annotation", "annotation-xml":
		return nil
	case "h1", "h2", "h3", "h4", "h5", "h6":
		return b.within(n, kind, level, document.Heading, int(name[1]-'0'))
	case "p", "div", "section", "article", "blockquote", "pre", "dt", "dd", "figcaption", "figure", "caption", "header",
		"footer", "main", "body", "ul", "ol", "dl", "nav", "hr", "address", "center", "form", "fieldset", "table",
		"tbody", "thead", "tfoot", "level1", "level2", "level3", "level4", "bodymatter", "frontmatter", "rearmatter":
		return b.within(n, kind, level, kind, level)
	case "li":
		return b.within(n, kind, level, document.Item, 0)
	case "aside":
		return b.within(n, kind, level, document.Note, 0)
	case "tr":
		return b.tableRow(n, kind, level)
	case "br", "img", "svg":
		b.p.space = true
	case "a":
		href := nodeAttr(n, "href")
		if !strings.Contains(href, "://") {
			break // another chapter
		}
		b.p.beginLink(href)
		err := b.walk(n, kind, level)
		b.p.endLink()
		return err
	}
	return b.walk(n, kind, level)
}

// within reads an element as a block of its own, or as several.
func (b *epub) within(n *html.Node, outer document.Kind, outerLevel int, kind document.Kind, level int) error {
	if err := b.flush(outer, outerLevel); err != nil {
		return err
	}
	if err := b.walk(n, kind, level); err != nil {
		return err
	}
	return b.flush(kind, level)
}

func (b *epub) tableRow(n *html.Node, kind document.Kind, level int) error {
	if err := b.flush(kind, level); err != nil {
		return err
	}
	var cells [][]document.Block
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		blocks, err := b.collect(func() error { return b.within(c, kind, level, kind, level) })
		if err != nil {
			return err
		}
		cells = append(cells, blocks)
	}
	b.row(cells)
	return nil
}

func nodeAttr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
