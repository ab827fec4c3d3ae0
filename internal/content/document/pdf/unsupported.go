//go:build !((amd64 || arm64) && (linux || darwin || windows || freebsd))

package pdf

import (
	"context"
	"runtime"

	"kumo/internal/content/document"
)

// A Reader reads PDF files. On this kind of computer it reads none.
type Reader struct{}

// New returns a Reader.
func New(Config) *Reader { return &Reader{} }

// Start reports that this kind of computer is not supported.
func (*Reader) Start(context.Context) error {
	return document.Errorf(document.Unsupported, "PDF files can be read on amd64 and arm64 with Linux, macOS, "+
		"Windows or FreeBSD, not on %s/%s", runtime.GOOS, runtime.GOARCH)
}

// Read reports that this kind of computer is not supported.
func (r *Reader) Read(ctx context.Context, _ document.File, _ document.Limits) (*document.Document, error) {
	return nil, r.Start(ctx)
}

// Close does nothing.
func (*Reader) Close() error { return nil }
