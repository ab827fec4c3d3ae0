package store

import (
	"bufio"
	"errors"
	"io"
	"io/fs"

	"kumo/internal/vfs"
)

// EachLine calls f with the lines of a list or log, without their ends, and with where they begin. A line holds until f
// returns. What is behind the last end, as a crash leaves it, is no line: torn is its length.
func EachLine(src io.Reader, f func(line []byte, at int64) error) (torn int64, err error) {
	in := bufio.NewReaderSize(src, 256<<10)
	var long []byte // than the reader's buffer
	for at := int64(0); ; {
		line, err := in.ReadSlice('\n')
		if len(long) > 0 || errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			line = long
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return int64(len(line)), nil
		case err != nil:
			return 0, err
		}
		if err := f(line[:len(line)-1], at); err != nil {
			return 0, err
		}
		at += int64(len(line))
		long = long[:0]
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
