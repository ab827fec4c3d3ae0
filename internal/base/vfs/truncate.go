package vfs

import (
	"errors"
	"fmt"
	"io/fs"
)

// TruncateTo cuts the file at name to length. A file that is not there counts as empty; one that is shorter than length is
// an error of kind fs.ErrInvalid, because what it has lost cannot be made good here.
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

// Invalidf is an error of kind fs.ErrInvalid that says what it is told, and nothing more.
func Invalidf(format string, args ...any) error { return &invalid{fmt.Sprintf(format, args...)} }

type invalid struct{ what string }

func (e *invalid) Error() string { return e.what }

func (e *invalid) Unwrap() error { return fs.ErrInvalid }
