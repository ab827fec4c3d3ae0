package main

import (
	"fmt"
	"os"
	"path/filepath"

	"kumo/internal/content/document/pdf"
	"kumo/internal/content/document/worker"
)

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
