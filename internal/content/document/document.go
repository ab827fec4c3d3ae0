// Package document defines what is read from documents that are not HTML: PDF, office documents, e-books and images.
//
// A reader (packages office, pdf and picture) returns a [Document]: metadata and blocks of text in reading order.
// [Document.HTML] converts it to an HTML page with the same content, so that everything that reads pages reads documents
// too: links, main text, near-duplicates, field rules, Markdown, the full-text index.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A Document is the content of a file.
type Document struct {
	Format Format
	Title  string
	Author string // several are joined by ", "
	// dates as RFC 3339, or as a date only; "" if the file has none
	Published, Modified string
	Lang                string // BCP 47, as declared
	Description         string
	Rights              string // copyright or licence, as stated
	Pages               int    // pages, slides, sheets or chapters; 0 if the format has none

	Blocks      []Block
	Links       []string // targets of links that have no text of their own in Blocks
	Attachments []string // names of embedded files
	// further metadata: of images "width", "height", "camera", …, and statements of rights such as "tdm-reservation"
	Properties []Property

	// Problem is why Blocks lack some or all of the text; "" if they have all of it. Detail says more in words.
	Problem Problem
	Detail  string
}

// IsOther reports whether a file is no document, but a ZIP archive of other files.
func (d *Document) IsOther() bool { return d.Format == Archive && d.Problem == Unsupported }

// A Property is a name and a value.
type Property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Kind is what a Block is.
type Kind uint8

// The kinds.
const (
	Paragraph Kind = iota
	Heading        // of a Level
	Item           // of a list
	Row            // of a table; Text is empty and Cells are set
	Note           // a footnote, an endnote, a comment or a speaker's note
)

// A Block is a paragraph or the like. Its texts are UTF-8; white space is collapsed.
type Block struct {
	Kind  Kind
	Level int // of a Heading, 1 to 6
	Text  string
	Cells []string
	Links []Link
	Page  int // from 1; 0 if the format has no pages
}

// A Link leads from a block's text to a URL, which is written as in the file and may be relative.
type Link struct {
	Text string // the part of the block's text that is the link; "" if unknown
	URL  string
}

// A Format is a file format.
type Format string

// The formats.
const (
	PDF     Format = "pdf"
	DOCX    Format = "docx"
	PPTX    Format = "pptx"
	XLSX    Format = "xlsx"
	ODT     Format = "odt"
	ODS     Format = "ods"
	ODP     Format = "odp"
	EPUB    Format = "epub"
	JPEG    Format = "jpeg"
	PNG     Format = "png"
	WebP    Format = "webp"
	GIF     Format = "gif"
	TIFF    Format = "tiff"
	HEIF    Format = "heif"
	AVIF    Format = "avif"
	Archive Format = "zip" // a ZIP archive that is none of the above
	// an OLE2 compound file: an encrypted office document, or one of the formats before 2007 (doc, xls, ppt)
	Compound Format = "ole2"
	RTF      Format = "rtf" // Rich Text Format
)

// IsImage reports whether files of the format are pictures, which have metadata and no text.
func (f Format) IsImage() bool {
	switch f {
	case JPEG, PNG, WebP, GIF, TIFF, HEIF, AVIF:
		return true
	}
	return false
}

// A Problem is why a document's text is missing or incomplete.
type Problem string

// The problems.
const (
	Encrypted Problem = "encrypted" // a password is needed
	NoText    Problem = "no-text"   // its pages are pictures, such as scans
	Cut       Problem = "cut"       // the file is incomplete because of the crawl's --max-body or a broken connection
	Broken    Problem = "broken"    // the file violates its format
	TooLarge  Problem = "too-large" // a limit of sizes, counts or depths was reached
	Timeout   Problem = "timeout"   // reading took too long
	Crashed   Problem = "crashed"   // the process that reads documents ended
	// no reader for the format, or not on this kind of computer
	Unsupported Problem = "unsupported"
)

// An Error is a Problem due to which nothing of a document could be read.
type Error struct {
	Problem Problem
	Err     error // what exactly is wrong
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Problem, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error. Its format is as that of fmt.Errorf.
func Errorf(p Problem, format string, args ...any) *Error {
	return &Error{Problem: p, Err: fmt.Errorf(format, args...)}
}

// ProblemOf returns the Problem and the detail of an error: Broken for one that is no Error.
func ProblemOf(err error) (Problem, string) {
	var e *Error
	if errors.As(err, &e) {
		return e.Problem, e.Err.Error()
	}
	return Broken, err.Error()
}

// Limits bound the work for a document. Sizes that a file declares are never trusted.
type Limits struct {
	Text     int   // bytes of all blocks
	Blocks   int   // number of blocks
	Links    int   // number of links
	Pages    int   // pages that are read
	Inflated int64 // bytes of all parts of an archive
	Entries  int   // entries of an archive
	Ratio    int64 // inflated by compressed bytes of an entry, above the first MiB
	Depth    int   // nested XML elements
}

// Default limits.
func Default() Limits {
	return Limits{Text: 4 << 20, Blocks: 200_000, Links: 20_000, Pages: 2_000, Inflated: 256 << 20, Entries: 20_000,
		Ratio: 200, Depth: 256}
}

// A File is the content of a document.
type File interface {
	io.ReaderAt
	Size() int64
}

// Detect returns the format by the first bytes of a file; "" if it is none that has a reader. Office documents and
// e-books begin as any ZIP archive does: they are Archive, and the reader finds out.
func Detect(head []byte) Format {
	if i := bytes.Index(head[:min(len(head), 1024)], []byte("%PDF-")); i >= 0 && !bytes.HasPrefix(head, []byte("PK")) {
		return PDF
	}
	for _, s := range signatures {
		if len(head) >= s.at+len(s.magic) && string(head[s.at:s.at+len(s.magic)]) == s.magic {
			if s.format == WebP && string(head[:4]) != "RIFF" {
				continue
			}
			return s.format
		}
	}
	return ""
}

var signatures = []struct {
	at     int
	magic  string
	format Format
}{
	{0, `{\rtf`, RTF}, {0, "PK\x03\x04", Archive}, {0, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", Compound},
	{0, "\xFF\xD8\xFF", JPEG}, {0, "\x89PNG\r\n\x1A\n", PNG}, {8, "WEBP", WebP},
	{0, "GIF87a", GIF}, {0, "GIF89a", GIF}, {0, "II*\x00", TIFF}, {0, "MM\x00*", TIFF},
	{4, "ftypavif", AVIF}, {4, "ftypavis", AVIF}, {4, "ftypheic", HEIF}, {4, "ftypheix", HEIF}, {4, "ftypheim", HEIF},
	{4, "ftypheis", HEIF}, {4, "ftyphevc", HEIF}, {4, "ftypmif1", HEIF}, {4, "ftypmsf1", HEIF},
}
