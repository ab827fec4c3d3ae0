package vfs

import "errors"

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
