package store

import (
	"bufio"
	"errors"
	"io"
	"io/fs"

	"kumo/internal/base/vfs"
)

// maxLine is the maximum length of a line in memory, in bytes.
const maxLine = 256 << 20

// EachLine calls f with each line of src, without its end, and its offset. A line is valid until f returns. If a line
// is longer than maxLine, which kumo never writes, f gets its beginning. Bytes after the last line end, which a crash
// leaves, are not passed to f; torn is their number.
func EachLine(src io.Reader, f func(line []byte, at int64) error) (torn int64, err error) {
	return eachLine(src, maxLine, f)
}

func eachLine(src io.Reader, most int, f func(line []byte, at int64) error) (torn int64, err error) {
	in := bufio.NewReaderSize(src, 256<<10)
	var long []byte // the line, if it exceeds the reader's buffer
	for at, length := int64(0), int64(0); ; {
		line, err := in.ReadSlice('\n')
		length += int64(len(line))
		if len(long) > 0 || errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line[:min(len(line), most+1-len(long))]...)
			line = long
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return length, nil
		case err != nil:
			return 0, err
		}
		if err := f(line[:len(line)-1], at); err != nil {
			return 0, err
		}
		at += length
		long, length = long[:0], 0
	}
}

// EachLineOf is EachLine for a file. A missing file has no lines.
func EachLineOf(disk vfs.FS, name string, f func(line []byte, at int64) error) (torn int64, err error) {
	src, err := disk.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = src.Close() }() // only read, so the error does not matter
	return EachLine(src, f)
}
