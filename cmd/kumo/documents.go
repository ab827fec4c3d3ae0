package main

import (
	"kumo/internal/content/document"
	"kumo/internal/content/document/reader"
	"kumo/internal/engine/crawl"
)

// documentReader reads documents of all formats.
type documentReader struct {
	*reader.Reader
	close func() error
}

// Close ends the process that reads PDFs.
func (r *documentReader) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

// newDocumentReader returns a reader. A process for PDFs starts with the first one.
func newDocumentReader() *documentReader {
	return &documentReader{Reader: reader.New(reader.Config{})}
}

// documentsOf returns the reader of a crawl's documents, and sets what is read of them; nil: nothing is.
func documentsOf(o *options) crawl.DocumentReader {
	mode := &o.Job.Crawl.Documents
	if *mode == document.Auto {
		if *mode = document.Off; o.Text {
			*mode = document.Text
		}
	}
	if *mode == document.Off || o.noFetch || o.othersFetch {
		return nil
	}
	return newDocumentReader()
}
