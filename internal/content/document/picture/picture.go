// Package picture reads the metadata of images: size, date, camera, title, author and statements of rights, from EXIF,
// IPTC and XMP. It decodes no pixels.
package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/bep/imagemeta"

	"kumo/internal/content/document"
)

// Limits of the work for an image.
const (
	maxTags     = 2_000
	maxTagSize  = 16 << 10 // bytes of a value
	maxXMP      = 1 << 20  // bytes
	maxAccesses = 200_000  // reads and seeks of a file
	maxText     = 4 << 10  // bytes of a field
)

// Read reads an image. It returns an error, always a *document.Error, only if it read nothing; otherwise the document's
// Problem says what is missing.
func Read(f document.File, _ document.Limits) (*document.Document, error) {
	head := make([]byte, min(64, max(f.Size(), 0)))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, document.Errorf(document.Broken, "read image: %w", err)
	}
	format := document.Detect(head)
	if !format.IsImage() {
		return nil, document.Errorf(document.Unsupported, "the file is not an image of a format that kumo reads")
	}
	if format == document.HEIF && bytes.Contains(head, []byte("avif")) {
		format = document.AVIF
	}
	r := &reader{file: f, doc: document.Document{Format: format}}
	err := r.read()
	r.finish()
	isEmpty := len(r.doc.Properties) == 0 && r.doc.Title+r.doc.Author+r.doc.Rights+r.doc.Description == ""
	if err == nil && isEmpty {
		err = document.Errorf(document.Broken, "the file has neither a size nor other metadata")
	}
	if err != nil {
		p, detail := document.ProblemOf(err)
		if isEmpty {
			return nil, document.Errorf(p, "read %s image: %s", format, detail)
		}
		r.doc.Problem, r.doc.Detail = p, fmt.Sprintf("read %s image: %s", format, detail)
	}
	return &r.doc, nil
}

// A source is where a field is found. A greater one is preferred: XMP is what people edit last.
type source int

const (
	exif source = iota + 1
	iptc
	xmp
)

// A reader reads one image.
type reader struct {
	file          document.File
	doc           document.Document
	width, height int
	from          map[*string]source // where a field is from
	camera, maker string
	offset        string // of the date from EXIF, from UTC
}

// set sets a field, unless it is from a better source.
func (r *reader) set(field *string, from source, value string) {
	value = clean(value)
	if value == "" || r.from[field] > from {
		return
	}
	if r.from == nil {
		r.from = map[*string]source{}
	}
	r.from[field], *field = from, value
}

// clean returns a text in UTF-8 with white space collapsed, up to maxText bytes.
func clean(s string) string {
	s = strings.ReplaceAll(s[:min(len(s), maxText)], "\x00", " ")
	return strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
}

func (r *reader) property(name, value string) {
	if value = clean(value); value != "" {
		r.doc.Properties = append(r.doc.Properties, document.Property{Name: name, Value: value})
	}
}

// formats are those of the library.
var formats = map[document.Format]imagemeta.ImageFormat{document.JPEG: imagemeta.JPEG, document.PNG: imagemeta.PNG,
	document.WebP: imagemeta.WebP, document.TIFF: imagemeta.TIFF, document.HEIF: imagemeta.HEIF,
	document.AVIF: imagemeta.AVIF}

func (r *reader) read() error {
	switch r.doc.Format {
	case document.GIF:
		return r.gif()
	case document.PNG:
		if err := r.png(); err != nil {
			return err
		}
	case document.WebP:
		r.webp()
	}
	sources := imagemeta.EXIF | imagemeta.XMP | imagemeta.IPTC | imagemeta.CONFIG
	if r.doc.Format == document.PNG {
		sources = imagemeta.EXIF | imagemeta.CONFIG // the library inflates IPTC of PNG without a limit
	}
	result, err := imagemeta.Decode(imagemeta.Options{R: &boundedReader{r: io.NewSectionReader(r.file, 0, r.file.Size())},
		ImageFormat: formats[r.doc.Format], Sources: sources, LimitNumTags: maxTags, LimitTagSize: maxTagSize,
		HandleTag: r.tag, HandleXMP: r.handleXMP, ShouldHandleTag: wants})
	if c := result.ImageConfig; c.Width > 0 && c.Height > 0 {
		r.width, r.height = c.Width, c.Height
	}
	var known *document.Error
	if err != nil && !errors.As(err, &known) {
		err = document.Errorf(document.Broken, "%w", err)
	}
	return err
}

// A boundedReader limits the number of accesses to a file, which may lead a reader in circles.
type boundedReader struct {
	r io.ReadSeeker
	n int
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.n++; b.n > maxAccesses {
		return 0, errAccesses
	}
	return b.r.Read(p)
}

func (b *boundedReader) Seek(offset int64, whence int) (int64, error) {
	if b.n++; b.n > maxAccesses {
		return 0, errAccesses
	}
	return b.r.Seek(offset, whence)
}

var errAccesses = document.Errorf(document.TooLarge,
	"the metadata takes more than %d accesses to the file", maxAccesses)

func wants(tag imagemeta.TagInfo) bool {
	return tag.Source != imagemeta.EXIF || strings.HasPrefix(tag.Namespace, "IFD0")
}

// tag reads a tag of EXIF or IPTC.
func (r *reader) tag(tag imagemeta.TagInfo) error {
	d := &r.doc
	v, is := tag.Value.(string)
	if list, several := tag.Value.([]string); several {
		v, is = strings.Join(list, ", "), true
	}
	if !is {
		return nil
	}
	if tag.Source == imagemeta.EXIF {
		switch tag.Tag {
		case "Make":
			r.maker = clean(v)
		case "Model":
			r.camera = clean(v)
		case "ImageDescription":
			r.set(&d.Description, exif, v)
		case "XPTitle":
			r.set(&d.Title, exif, v)
		case "Artist":
			r.set(&d.Author, exif, strings.ReplaceAll(v, ";", ", "))
		case "Copyright":
			r.set(&d.Rights, exif, v)
		case "DateTimeOriginal":
			r.set(&d.Published, exif, v)
		case "OffsetTimeOriginal":
			r.offset = clean(v)
		case "ModifyDate", "DateTime":
			r.set(&d.Modified, exif, exifDate(v, ""))
		}
		return nil
	}
	switch tag.Tag {
	case "ObjectName", "Headline":
		r.set(&d.Title, iptc, v)
	case "Byline", "By-line":
		if r.from[&d.Author] == iptc {
			v = d.Author + ", " + v
		}
		r.set(&d.Author, iptc, v)
	case "CaptionAbstract", "Caption-Abstract":
		r.set(&d.Description, iptc, v)
	case "CopyrightNotice":
		r.set(&d.Rights, iptc, v)
	}
	return nil
}

// finish completes the document.
func (r *reader) finish() {
	d := &r.doc
	if r.from[&d.Published] == exif {
		d.Published = exifDate(d.Published, r.offset)
	}
	var first []document.Property
	if r.width > 0 && r.height > 0 {
		first = append(first, document.Property{Name: "width", Value: strconv.Itoa(r.width)},
			document.Property{Name: "height", Value: strconv.Itoa(r.height)})
	}
	camera := r.camera
	if brand, _, _ := strings.Cut(r.maker, " "); brand != "" && !strings.HasPrefix(camera, brand) {
		camera = strings.TrimSpace(r.maker + " " + camera)
	}
	if camera != "" {
		first = append(first, document.Property{Name: "camera", Value: camera})
	}
	d.Properties = append(first, d.Properties...)
}

// exifDate returns a date of EXIF as a document has it. Without an offset, only the day is certain.
func exifDate(s, offset string) string {
	const layout = "2006:01:02 15:04:05"
	s = clean(s)
	if t, err := time.Parse(layout+"-07:00", s+offset); err == nil {
		return t.Format(time.RFC3339)
	}
	if t, err := time.Parse("2006:01:02", s[:min(len(s), 10)]); err == nil {
		return t.Format(time.DateOnly)
	}
	return ""
}

func (r *reader) gif() error {
	head := make([]byte, 10)
	if _, err := r.file.ReadAt(head, 0); err != nil {
		return document.Errorf(document.Broken, "%w", err)
	}
	r.width, r.height = int(binary.LittleEndian.Uint16(head[6:])), int(binary.LittleEndian.Uint16(head[8:]))
	return nil
}

// webp reads the size of an image in the simple form, for which the library returns none.
func (r *reader) webp() {
	head := make([]byte, 30)
	if _, err := r.file.ReadAt(head, 0); err != nil {
		return
	}
	switch string(head[12:16]) {
	case "VP8 ":
		if bytes.Equal(head[23:26], []byte{0x9D, 0x01, 0x2A}) {
			r.width = int(binary.LittleEndian.Uint16(head[26:])) & 0x3FFF
			r.height = int(binary.LittleEndian.Uint16(head[28:])) & 0x3FFF
		}
	case "VP8L":
		if bits := binary.LittleEndian.Uint32(head[21:]); head[20] == 0x2F {
			r.width, r.height = int(bits&0x3FFF)+1, int(bits>>14&0x3FFF)+1
		}
	}
}
