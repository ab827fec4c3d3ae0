package wire

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"kumo/internal/app/folder"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store/warc"
)

// CompleteFiles completes the record files of a crawl that was killed and will not resume: it truncates them to the
// lengths in its journal, and gives open WARC files their indexes and final names. It may be repeated. The folder must
// not be in use.
func CompleteFiles(dir string) (err error) {
	f := folder.At(dir, vfs.OS)
	parts, done := view(f)
	defer func() { err = errors.Join(err, done()) }()
	if len(parts.Broken) > 0 {
		return fmt.Errorf("%s: %s", parts.Broken[0].File, parts.Broken[0].What)
	}
	for _, m := range parts.State.Marks {
		if !slices.Contains(folder.Outputs, m.Name) {
			continue
		}
		if err := vfs.TruncateTo(vfs.OS, filepath.Join(dir, m.Name), m.Length); err != nil {
			return err
		}
	}
	records, err := warc.Open(vfs.OS, warc.Config{Dir: dir}, parts.State.Marks)
	if err != nil {
		return err
	}
	return records.Close()
}
