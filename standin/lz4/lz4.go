// Package lz4 has the functions that kumo's libraries call of the module that it replaces. kumo neither compresses with
// LZ4 nor reads LZ4 data: all of them fail.
package lz4

import (
	"errors"
	"io"
)

var errUnsupported = errors.New("LZ4 is not supported by this build of kumo")

// A CompressionLevel has no meaning here.
type CompressionLevel uint32

// Levels of compression.
const (
	Fast   CompressionLevel = 0
	Level1 CompressionLevel = 1 << (8 + iota)
	Level2
	Level3
	Level4
	Level5
	Level6
	Level7
	Level8
	Level9
)

// An Option is for a Writer.
type Option func() error

// CompressionLevelOption returns an option that fails.
func CompressionLevelOption(CompressionLevel) Option { return func() error { return errUnsupported } }

// A Writer fails.
type Writer struct{}

// NewWriter returns a writer that fails.
func NewWriter(io.Writer) *Writer { return &Writer{} }

// Apply fails.
func (*Writer) Apply(...Option) error { return errUnsupported }

// Reset does nothing.
func (*Writer) Reset(io.Writer) {}

// Write fails.
func (*Writer) Write([]byte) (int, error) { return 0, errUnsupported }

// Flush fails.
func (*Writer) Flush() error { return errUnsupported }

// Close fails.
func (*Writer) Close() error { return errUnsupported }

// A Reader fails.
type Reader struct{}

// NewReader returns a reader that fails.
func NewReader(io.Reader) *Reader { return &Reader{} }

// Reset does nothing.
func (*Reader) Reset(io.Reader) {}

// Read fails.
func (*Reader) Read([]byte) (int, error) { return 0, errUnsupported }

// CompressBlockBound returns n: nothing is compressed.
func CompressBlockBound(n int) int { return n }

// A Compressor fails.
type Compressor struct{}

// CompressBlock fails.
func (*Compressor) CompressBlock(_, _ []byte) (int, error) { return 0, errUnsupported }

// A CompressorHC fails.
type CompressorHC struct{ Level CompressionLevel }

// CompressBlock fails.
func (*CompressorHC) CompressBlock(_, _ []byte) (int, error) { return 0, errUnsupported }

// UncompressBlock panics: parquet-go, its only caller, would try again for ever after an error.
func UncompressBlock(_, _ []byte) (int, error) { panic(errUnsupported) }
