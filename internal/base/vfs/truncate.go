package vfs

import (
	"errors"
	"fmt"
	"io/fs"
)

// TruncateTo truncates a file to length. A missing file counts as empty. A file shorter than length has lost data,
// which is an error of kind fs.ErrInvalid.
func TruncateTo(disk FS, name string, length int64) error {
	size, err := disk.Size(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		size = 0
	case err != nil:
		return err
	}
	switch {
	case size < length:
		return Invalidf("%s is %d bytes long, but %d bytes were written to it", name, size, length)
	case size > length:
		return disk.Truncate(name, length)
	}
	return nil
}

// Invalidf returns an error of kind fs.ErrInvalid with just the formatted text.
func Invalidf(format string, args ...any) error { return &invalid{fmt.Sprintf(format, args...)} }

type invalid struct{ what string }

func (e *invalid) Error() string { return e.what }

func (e *invalid) Unwrap() error { return fs.ErrInvalid }
