// Package documents reads PDFs, office documents, e-books and images, for crawls of package kumo. A program that does
// not import it does not link its dependencies.
package documents

import (
	"os"
	"path/filepath"

	"kumo"
	"kumo/internal/content/document/pdf"
	"kumo/internal/content/document/reader"
)

// Options configure a reader. The zero value means the defaults.
type Options struct {
	// Cache is the folder where PDFium is kept after it is compiled, which takes some seconds of CPU. Default: kumo/pdf in
	// the user's cache folder.
	Cache string
}

// New returns a reader for [kumo.Documents], which closes it. It reads in the program's own process: PDFium starts with
// the first PDF, and then takes about 60 MB.
func New(o Options) kumo.DocumentReader {
	if o.Cache == "" {
		if dir, err := os.UserCacheDir(); err == nil { // without one, PDFium is compiled anew
			o.Cache = filepath.Join(dir, "kumo", "pdf")
		}
	}
	p := pdf.New(pdf.Config{CacheDir: o.Cache})
	return &documents{reader.New(reader.Config{PDF: p}), p}
}

type documents struct {
	*reader.Reader
	pdf *pdf.Reader
}

// Close implements [kumo.DocumentReader].
func (d *documents) Close() error { return d.pdf.Close() }
