package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"kumo/internal/app/setting"
	"kumo/internal/content/document"
	"kumo/internal/content/document/pdf"
	"kumo/internal/content/document/reader"
	"kumo/internal/content/document/tika"
	"kumo/internal/content/document/worker"
	"kumo/internal/engine/crawl"
)

// A documentReader reads documents of all formats.
type documentReader struct {
	*reader.Reader
	pdfs *pdfReader
}

// Close ends the processes that read PDFs. A later Read starts them again.
func (r *documentReader) Close() error { return r.pdfs.Close() }

// newDocumentReader returns a reader. A process for PDFs starts with the first one. Some formats are read by others.
func newDocumentReader(others map[document.Format]document.Reader) *documentReader {
	pdfs := new(pdfReader)
	return &documentReader{reader.New(reader.Config{PDF: pdfs, Others: others}), pdfs}
}

// A pdfReader reads PDFs in processes of its own.
type pdfReader struct {
	mu     sync.Mutex
	worker *worker.Worker // nil: none is open
}

// Read implements [document.Reader].
func (r *pdfReader) Read(ctx context.Context, f document.File, lim document.Limits) (*document.Document, error) {
	w, err := r.open()
	if err != nil {
		return nil, document.Errorf(document.Crashed, "%w", err)
	}
	return w.Read(ctx, f, lim)
}

func (r *pdfReader) open() (*worker.Worker, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.worker == nil {
		binary, err := os.Executable()
		if err != nil {
			return nil, err
		}
		r.worker = newDocumentWorker(binary, max(1, runtime.GOMAXPROCS(0)/2))
	}
	return r.worker, nil
}

// Close ends the processes.
func (r *pdfReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.worker
	r.worker = nil
	if w == nil {
		return nil
	}
	return w.Close()
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

// documentsOf returns the reader of a crawl's documents; nil: they are not read.
func documentsOf(o *options) (crawl.DocumentReader, error) {
	mode := o.Job.Crawl.Documents // stays automatic: a later run may write texts
	if mode == document.Auto && !o.Text {
		mode = document.Off
	}
	others, err := extractors(o.Extract)
	if mode == document.Off || o.noFetch || o.othersFetch || err != nil {
		return nil, err
	}
	return newDocumentReader(others), nil
}

// documentsArgument is the only argument of kumo as the process that reads PDF files. It is no command: help, manual
// and completion do not list it.
const documentsArgument = "__documents"

// newDocumentWorker returns a reader of PDF files in child processes of this binary. The first one starts at the first
// file. PDFium's compiled code is stored in the user's cache; without a cache each child compiles it.
func newDocumentWorker(binary string, children int) *worker.Worker {
	c := worker.Config{Command: []string{binary, documentsArgument}, Children: children}
	if cache, err := os.UserCacheDir(); err == nil {
		c.CacheDir = filepath.Join(cache, "kumo", "pdfium")
	}
	return worker.New(c)
}

// serveDocuments is the child process. It returns the exit code.
func serveDocuments() int {
	err := worker.Serve(os.Stdin, os.Stdout, func(h worker.Hello) worker.Reader {
		return pdf.New(pdf.Config{CacheDir: h.CacheDir, Memory: h.Memory})
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "kumo: %v; %s is for kumo's own use\n", err, documentsArgument)
		return exitFailed
	}
	return exitDone
}
