package vfs

import (
	"errors"
	"fmt"
	"io"
)

// Replace writes a file so that a reader sees the old content or the new, never a part, whatever happens.
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

// ReadN appends n bytes of r to b. It makes room as they come, since n may be what a short file says of itself. The
// error is that of [io.ReadFull].
func ReadN(r io.Reader, b []byte, n int) ([]byte, error) {
	const step = 1 << 20
	for begin := len(b); len(b)-begin < n; {
		rest := n - (len(b) - begin)
		more := min(rest, max(step, len(b)-begin, cap(b)-len(b)))
		if cap(b)-len(b) < more {
			b = append(make([]byte, 0, len(b)+more), b...) // and no more: slices.Grow would double it
		}
		got, err := io.ReadFull(r, b[len(b):len(b)+more])
		if b = b[:len(b)+got]; err != nil {
			return b, err
		}
	}
	return b, nil
}
