// Package pdf reads PDF files: text in reading order, links and metadata.
//
// PDFium does the work, compiled to WebAssembly: a file that attacks it stays inside the sandbox. A file can still cost
// time and memory, so crawls read PDF files in a child process (package worker).
package pdf

import "math"

// A Config is how PDF files are read.
type Config struct {
	// CacheDir is where the compiled PDFium is stored (about 20 MB); "" compiles it for each Reader, which takes some
	// seconds of CPU time.
	CacheDir string
	// Memory limits PDFium's memory for a file, in bytes; 0 is 512 MiB.
	Memory int64
}

// memoryPages is the limit in WebAssembly's pages of 64 KiB.
func (c Config) memoryPages() uint32 {
	const page, most = 64 << 10, 65536
	if c.Memory <= 0 {
		c.Memory = 512 << 20
	}
	return uint32(min(max(c.Memory/page, 1), most, math.MaxInt32)) //nolint:gosec // bounded by most
}
