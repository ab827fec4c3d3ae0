package document

import (
	"bytes"
	"context"

	"kumo/internal/base/page"
	"kumo/internal/content/mime"
)

// A Reader reads documents. Its methods are safe for concurrent use.
type Reader interface {
	// Read reads a document. An error means that nothing of it could be read; ProblemOf tells why.
	Read(ctx context.Context, f File, lim Limits) (*Document, error)
}

// A ReadFunc reads a document. An error is as that of Reader.
type ReadFunc func(File) (*Document, error)

// ReadResponse reads the document in a response whose body is decoded. It returns nil if the body is no document with
// text: HTML, an image, a ZIP archive of other files. A document that cannot be read has a Problem.
func ReadResponse(resp *page.Response, read ReadFunc) *Document {
	contentType := resp.Header.Get("Content-Type")
	format := Detect(resp.Body[:min(len(resp.Body), 1<<10)])
	if format == "" || format.IsImage() || resp.Status/100 != 2 {
		return nil
	}
	if t := mime.Sniff(resp.Body, contentType, false); t.IsHTML() {
		return nil
	}
	if resp.Truncated != page.Whole {
		return Failed(format, Errorf(Cut, "the body is incomplete: %s", resp.Truncated))
	}
	d, err := read(bytes.NewReader(resp.Body))
	if err != nil {
		d = Failed(format, err)
	}
	if d.IsOther() {
		return nil
	}
	return d
}
