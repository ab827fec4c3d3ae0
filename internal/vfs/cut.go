package vfs

import (
	"errors"
	"fmt"
	"io/fs"
)

// CutBack cuts the file at name to length. A file that is not there counts as empty; one that is shorter than length is an
// error of kind fs.ErrInvalid, because what it has lost cannot be made good here.
func CutBack(disk FS, name string, length int64) error {
	size, err := disk.Size(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		size = 0
	case err != nil:
		return err
	}
	switch {
	case size < length:
		return fmt.Errorf("%s is %d bytes long, but %d bytes were written to it: %w", name, size, length, fs.ErrInvalid)
	case size > length:
		return disk.Truncate(name, length)
	}
	return nil
}
