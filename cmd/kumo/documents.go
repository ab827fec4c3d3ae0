package main

import (
	"sync"

	"github.com/spf13/pflag"

	"kumo/internal/app/setting"
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

// sharedDocuments is the reader of a process that reads the files of crawls.
var sharedDocuments = sync.OnceValue(newDocumentReader)

// A documentsFlag is the flag --documents of a command that reads the files of a crawl.
type documentsFlag bool

func (d *documentsFlag) bind(f *pflag.FlagSet) {
	f.BoolVar((*bool)(d), setting.DocumentsKey, true, "read PDF, office documents and e-books")
}

// reader returns the reader; nil if documents are not read.
func (d documentsFlag) reader() document.Reader {
	if !d {
		return nil
	}
	return sharedDocuments()
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
