package store

import (
	"bufio"
	"errors"
	"io"
	"io/fs"

	"kumo/internal/base/vfs"
)

// maxLine bounds the memory that a line takes, in bytes.
const maxLine = 256 << 20

// EachLine calls f with the lines of a list or log, without their ends, and with where they begin. A line holds until f
// returns. Of a line longer than maxLine, which no kumo writes, f gets the beginning. What is behind the last end, as a
// crash leaves it, is no line: torn is its length.
func EachLine(src io.Reader, f func(line []byte, at int64) error) (torn int64, err error) {
	return eachLine(src, maxLine, f)
}

func eachLine(src io.Reader, most int, f func(line []byte, at int64) error) (torn int64, err error) {
	in := bufio.NewReaderSize(src, 256<<10)
	var long []byte // the line, if it is longer than the reader's buffer
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

// EachLineOf is EachLine for a file. One that is not there has no lines.
func EachLineOf(disk vfs.FS, name string, f func(line []byte, at int64) error) (torn int64, err error) {
	src, err := disk.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = src.Close() }() // it is only read
	return EachLine(src, f)
}
