package vfs

import (
	"errors"
	"fmt"
	"io"
)

// Replace writes a file so that a reader sees the old content or the new, never a part, whatever happens.
func Replace(disk FS, name string, data []byte) error {
	tmp := name + ".tmp"
	if err := CutBack(disk, tmp, 0); err != nil {
		return err
	}
	f, err := disk.Append(tmp)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, disk.Remove(tmp))
	}
	return disk.Rename(tmp, name)
}

// ReadFile reads a whole file of at most so many bytes. A longer one is an error: a folder may come from a stranger.
func ReadFile(disk FS, name string, most int64) ([]byte, error) {
	f, err := disk.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("read %s: more than %d bytes", name, most)
	}
	return data, errors.Join(err, f.Close())
}
