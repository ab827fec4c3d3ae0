package vfs

import (
	"errors"
	"fmt"
	"io"
)

// Replace writes a file atomically: readers see either the old or the new content, even after a crash.
func Replace(disk FS, name string, data []byte) error {
	tmp := name + ".tmp"
	if err := TruncateTo(disk, tmp, 0); err != nil {
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

// ReadFile reads a file of at most most bytes. A longer file is an error, since a folder may come from a stranger.
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

// ReadN reads n bytes of r and appends them to b. Memory grows with the bytes that were read, since n may come from a
// damaged file. Errors are as of [io.ReadFull].
func ReadN(r io.Reader, b []byte, n int) ([]byte, error) {
	const step = 1 << 20
	for begin := len(b); len(b)-begin < n; {
		rest := n - (len(b) - begin)
		more := min(rest, max(step, len(b)-begin, cap(b)-len(b)))
		if cap(b)-len(b) < more {
			b = append(make([]byte, 0, len(b)+more), b...) // exact size: slices.Grow would double it
		}
		got, err := io.ReadFull(r, b[len(b):len(b)+more])
		if b = b[:len(b)+got]; err != nil {
			return b, err
		}
	}
	return b, nil
}
