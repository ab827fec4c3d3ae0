package statefile

import (
	"errors"
	"io/fs"
	"path/filepath"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
)

// SalvageDeferred returns the content of the file of deferred URLs of the crawl in dir, up to the first damage.
func SalvageDeferred(disk vfs.FS, dir string) (all []page.Skip, err error) {
	name := filepath.Join(dir, DeferredName)
	if _, err := disk.Size(name); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	_ = ReadDeferred(disk, name, 0, func(s page.Skip, _ int64) error { // damage ends the salvage
		all = append(all, s)
		return nil
	})
	return all, nil
}

// WriteDeferred creates the file of deferred URLs of the crawl in dir.
func WriteDeferred(disk vfs.FS, dir string, all []page.Skip) error {
	a, err := OpenDeferred(disk, dir, nil)
	if err != nil {
		return err
	}
	if err = a.Add(all); err == nil {
		_, err = a.Mark()
	}
	return errors.Join(err, a.Sync(), a.Close())
}
