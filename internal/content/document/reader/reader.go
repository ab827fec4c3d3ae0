// Package reader reads documents of all formats: it detects the format by the content and calls the format's reader.
package reader

import (
	"context"
	"errors"
	"fmt"
	"io"

	"kumo/internal/content/document"
	"kumo/internal/content/document/office"
	"kumo/internal/content/document/picture"
)

// Config has the readers that are not part of this package.
type Config struct {
	PDF document.Reader // nil: PDF files are document.Unsupported
	// Others read some formats instead of this package and PDF. An error Unsupported of theirs is final.
	Others map[document.Format]document.Reader
}

// A Reader reads documents. It is safe for concurrent use.
type Reader struct {
	cfg Config
}

// New returns a Reader.
func New(cfg Config) *Reader { return &Reader{cfg} }

// headSize is how many bytes document.Detect needs.
const headSize = 1024

// Read reads a document. If nothing could be read, it returns a *document.Error. If a part could not be read, the
// document's Problem is set. After ctx ends, Read returns at the next access to the file. A panic in a
// reader is a document.Crashed with its text.
func (r *Reader) Read(ctx context.Context, f document.File, lim document.Limits) (d *document.Document, err error) {
	defer func() {
		if p := recover(); p != nil {
			d, err = nil, document.Errorf(document.Crashed, "read document: panic: %v", p)
		}
	}()
	head := make([]byte, min(headSize, max(f.Size(), 0)))
	if n, err := f.ReadAt(head, 0); n < len(head) && !errors.Is(err, io.EOF) {
		return nil, document.Errorf(document.Broken, "read document: %w", err)
	}
	d, err = r.read(ctx, document.Detect(head), f, lim)
	if cause := ctx.Err(); cause != nil && (err != nil || d.Problem != "") {
		if err != nil {
			return nil, document.Errorf(document.Timeout, "read document: %w", cause)
		}
		d.Problem, d.Detail = document.Timeout, fmt.Sprintf("read document: %v", cause)
	}
	var known *document.Error
	if err != nil && !errors.As(err, &known) {
		err = document.Errorf(document.Broken, "%w", err)
	}
	return d, err
}

func (r *Reader) read(ctx context.Context, format document.Format, f document.File,
	lim document.Limits) (*document.Document, error) {
	if other := r.cfg.Others[format]; other != nil {
		return other.Read(ctx, f, lim)
	}
	switch {
	case format == document.PDF && r.cfg.PDF != nil:
		return r.cfg.PDF.Read(ctx, f, lim)
	case format == document.Archive, format == document.Compound:
		return office.Read(&interruptible{f, ctx}, lim)
	case format.IsImage():
		return picture.Read(&interruptible{f, ctx}, lim)
	case format == "":
		return nil, document.Errorf(document.Unsupported, "the file is of no format that kumo reads as a document")
	}
	return nil, document.Errorf(document.Unsupported, "this kumo has no reader for %s files", format)
}

// An interruptible file cannot be read after a context ends.
type interruptible struct {
	document.File
	ctx context.Context
}

func (f *interruptible) ReadAt(b []byte, at int64) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, at)
}
