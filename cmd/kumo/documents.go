package main

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"kumo/internal/app/setting"
	"kumo/internal/content/document"
	"kumo/internal/content/document/reader"
	"kumo/internal/content/document/tika"
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

// newDocumentReader returns a reader. A process for PDFs starts with the first one. Some formats are read by others.
func newDocumentReader(others map[document.Format]document.Reader) *documentReader {
	return &documentReader{Reader: reader.New(reader.Config{Others: others})}
}

// extractors returns the readers of --extract.
func extractors(values []string) (map[document.Format]document.Reader, error) {
	formats := map[string][]document.Format{"doc": {document.Compound}, "rtf": {document.RTF}, "pdf": {document.PDF},
		"office": {document.Archive}, "image": {document.JPEG, document.PNG, document.WebP, document.GIF, document.TIFF,
			document.HEIF, document.AVIF}}
	all := map[document.Format]document.Reader{}
	for _, v := range values {
		name, url, _ := strings.Cut(v, "=")
		if formats[name] == nil {
			return nil, usagef("--%s %q: it is not like doc=http://127.0.0.1:9998; the types are %s", setting.ExtractKey, v,
				strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
		}
		server, err := tika.New(tika.Config{URL: url})
		if err != nil {
			return nil, usagef("--%s %s: %w", setting.ExtractKey, v, err)
		}
		for _, f := range formats[name] {
			all[f] = server
		}
	}
	return all, nil
}

// sharedDocuments is the reader of a process that reads the files of crawls.
var sharedDocuments = sync.OnceValue(func() *documentReader { return newDocumentReader(nil) })

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
func documentsOf(o *options) (crawl.DocumentReader, error) {
	mode := &o.Job.Crawl.Documents
	if *mode == document.Auto {
		if *mode = document.Off; o.Text {
			*mode = document.Text
		}
	}
	others, err := extractors(o.Extract)
	if *mode == document.Off || o.noFetch || o.othersFetch || err != nil {
		return nil, err
	}
	return newDocumentReader(others), nil
}
