// Package office reads office documents (docx, pptx, xlsx, odt, odp, ods) and e-books (epub): their text, links and
// metadata.
//
// All of them are ZIP archives of XML files. The format is that of the content, never of a name. Parts are read as
// streams and elements by their local names, so the strict and the transitional form of Office Open XML are the same,
// as are documents, templates and files with macros.
//
// Files are hostile: see document.Limits. Reading stops at a limit and at damage; the part before it is returned.
package office

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"kumo/internal/content/document"
)

// Read reads a document. It returns an error, always a *document.Error, only if it read nothing; otherwise the
// document's Problem says what is missing.
func Read(f document.File, lim document.Limits) (*document.Document, error) {
	head := make([]byte, min(8, max(f.Size(), 0)))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, document.Errorf(document.Broken, "read file: %w", err)
	}
	if document.Detect(head) == document.Compound {
		return nil, compound(f)
	}
	a, err := openArchive(f, lim)
	if err != nil {
		return nil, err
	}
	r := &reader{archive: a, builder: builder{lim: lim}}
	if err := r.read(); err != nil {
		p, detail := document.ProblemOf(err)
		if len(r.doc.Blocks) == 0 && r.doc.Title == "" && p != document.TooLarge || r.doc.Format == "" {
			return nil, document.Errorf(p, "%s", detail)
		}
		r.problem(err)
	}
	r.finish()
	return &r.doc, nil
}

// A reader reads one document.
type reader struct {
	*archive
	builder
}

func (r *reader) read() error {
	format, read, err := r.detect()
	if err != nil {
		return err
	}
	r.doc.Format = format
	if r.duplicate != "" {
		r.problem(document.Errorf(document.Broken, "the archive has two entries named %q", r.duplicate))
	}
	return read()
}

// openDocuments are the formats of OpenDocument by their media types, without "application/vnd.oasis.opendocument.".
var openDocuments = map[string]document.Format{"text": document.ODT, "text-template": document.ODT,
	"text-master": document.ODT, "text-web": document.ODT, "spreadsheet": document.ODS,
	"spreadsheet-template": document.ODS, "presentation": document.ODP, "presentation-template": document.ODP}

// detect returns the format and the function that reads it.
func (r *reader) detect() (document.Format, func() error, error) {
	declared := ""
	if r.has("mimetype") {
		text, err := r.bytes("mimetype", 100)
		if err != nil {
			return "", nil, err
		}
		declared = strings.TrimSpace(strings.TrimPrefix(string(text), "\uFEFF"))
	} else if r.has("META-INF/manifest.xml") && r.has("content.xml") {
		declared = r.manifestType()
	}
	if name, is := strings.CutPrefix(declared, "application/vnd.oasis.opendocument."); is {
		if format := openDocuments[name]; format != "" {
			return format, r.openDocument, nil
		}
		return "", nil, document.Errorf(document.Unsupported, "a file of type %s has no reader", clip(declared))
	}
	switch {
	case declared == "application/epub+zip", r.has("META-INF/container.xml") && !r.has("[Content_Types].xml"):
		return document.EPUB, r.epub, nil
	case r.has("[Content_Types].xml"):
		return r.detectOOXML()
	}
	return "", nil, document.Errorf(document.Unsupported, "a ZIP archive that is neither an office document nor an e-book")
}

// compound returns the error for an OLE2 file.
func compound(f document.File) error {
	var stream []byte // the name of the stream of an encrypted document, in UTF-16
	for _, c := range []byte("EncryptedPackage") {
		stream = append(stream, c, 0)
	}
	buf := make([]byte, 64<<10)
	for at := int64(0); at < f.Size(); at += int64(len(buf) - len(stream)) {
		n, err := f.ReadAt(buf, at)
		if bytes.Contains(buf[:n], stream) {
			return document.Errorf(document.Encrypted, "an office document that needs a password")
		}
		if err != nil {
			break
		}
	}
	return document.Errorf(document.Unsupported,
		"an OLE2 file, such as of Office before 2007 (doc, xls, ppt), has no reader")
}

// clip shortens a text from a file for an error message.
func clip(s string) string {
	if len(s) > 100 {
		s = s[:100] + "…"
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(s, "\uFFFD"))
}
