// Package documents reads PDFs, office documents, e-books and images, for crawls of package kumo. A program that does
// not import it does not link its dependencies.
package documents

import (
	"kumo"
	"kumo/internal/content/document/reader"
)

// New returns a reader for [kumo.Documents], which closes it.
func New() kumo.DocumentReader { return &documents{reader.New(reader.Config{})} }

type documents struct{ *reader.Reader }

// Close implements [kumo.DocumentReader].
func (d *documents) Close() error { return nil }
