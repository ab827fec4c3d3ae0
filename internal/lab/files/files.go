// Package files makes small documents for tests: files that the usual programs open.
package files

import (
	"archive/zip"
	"bytes"
	"fmt"
	"html"
	"strings"
)

// A Content is what a document has.
type Content struct {
	Title, Author string
	Heading       string
	Paragraphs    []string
	Link          string // the last paragraph leads there
}

// DOCX returns a Word file.
func DOCX(c Content) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name, text string) {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil { // a bytes.Buffer has no errors
			panic(err)
		}
	}
	add("[Content_Types].xml", `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/`+
		`content-types"><Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" ContentType=`+
		`"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType=`+
		`"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`)
	add("_rels/.rels", rels(rel("rId1", "officeDocument", "word/document.xml", "")+
		`<Relationship Id="rId2" Type="http://schemas.openxmlformats.org/package/2006/relationships/metadata/`+
		`core-properties" Target="docProps/core.xml"/>`))
	add("docProps/core.xml", `<?xml version="1.0"?><cp:coreProperties `+
		`xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" `+
		`xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>`+html.EscapeString(c.Title)+
		`</dc:title><dc:creator>`+html.EscapeString(c.Author)+`</dc:creator></cp:coreProperties>`)
	add("word/_rels/document.xml.rels", rels(rel("rId1", "hyperlink", c.Link, ` TargetMode="External"`)))
	var text strings.Builder
	text.WriteString(`<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr>` + run(c.Heading) + `</w:p>`)
	for i, p := range c.Paragraphs {
		r := run(p)
		if i == len(c.Paragraphs)-1 && c.Link != "" {
			r = `<w:hyperlink r:id="rId1">` + r + `</w:hyperlink>`
		}
		text.WriteString("<w:p>" + r + "</w:p>")
	}
	add("word/document.xml", `<?xml version="1.0"?><w:document `+
		`xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" `+
		`xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><w:body>`+text.String()+
		`</w:body></w:document>`)
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func run(s string) string {
	return `<w:r><w:t xml:space="preserve">` + html.EscapeString(s) + `</w:t></w:r>`
}

func rels(all string) string {
	return `<?xml version="1.0"?><Relationships ` +
		`xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` + all + `</Relationships>`
}

func rel(id, kind, target, more string) string {
	return fmt.Sprintf(`<Relationship Id="%s" Target="%s"%s `+
		`Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s"/>`,
		id, html.EscapeString(target), more, kind)
}

// PDF returns a PDF file with a page for each paragraph. Its texts are in Latin-1; the link covers the last paragraph.
func PDF(c Content) []byte {
	var b bytes.Buffer
	var at []int
	object := func(format string, args ...any) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n"+format+"\nendobj\n", append([]any{len(at)}, args...)...)
	}
	b.WriteString("%PDF-1.4\n")
	n := len(c.Paragraphs)
	var kids strings.Builder
	for i := range n {
		fmt.Fprintf(&kids, "%d 0 R ", 5+2*i)
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object("<< /Type /Pages /Kids [%s] /Count %d >>", kids.String(), n)
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	object("<< /Title (%s) /Author (%s) >>", escape(c.Title), escape(c.Author))
	for i, p := range c.Paragraphs {
		annots := ""
		if i == n-1 && c.Link != "" {
			annots = fmt.Sprintf("/Annots [<< /Type /Annot /Subtype /Link /Rect [50 690 550 730] /Border [0 0 0] "+
				"/A << /S /URI /URI (%s) >> >>]", escape(c.Link))
		}
		head := ""
		if i == 0 {
			head = fmt.Sprintf("/F1 24 Tf (%s) Tj 0 -50 Td ", escape(c.Heading))
		}
		text := fmt.Sprintf("BT 60 750 Td %s/F1 12 Tf (%s) Tj ET", head, escape(p))
		object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "+
			"/Resources << /Font << /F1 3 0 R >> >> %s >>", 6+2*i, annots)
		object("<< /Length %d >>\nstream\n%s\nendstream", len(text), text)
	}
	begin := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, pos := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", pos)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, begin)
	return b.Bytes()
}

// escape returns a text as the content of a PDF string.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '(' || r == ')' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < 256:
			b.WriteByte(byte(r))
		}
	}
	return b.String()
}
