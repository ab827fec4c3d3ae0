package seen

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"kumo/internal/base/vfs"
	"kumo/internal/state/seen/run"
)

// Salvage calls f with every readable URL in the runs that a database's manifest names: once for each run that has it,
// in no order. whole is false if the manifest or a part of a run could not be read.
func Salvage(disk vfs.FS, dir string, f func(url string, state State, depth int32) error) (whole bool, err error) {
	text, err := vfs.ReadFile(disk, filepath.Join(dir, "manifest"), 1<<24)
	if err != nil {
		return false, nil //nolint:nilerr // no readable manifest
	}
	var m struct {
		Runs, Waiting []struct{ ID uint64 }
	}
	if _, body, _ := strings.Cut(string(text), "\n"); json.Unmarshal([]byte(body), &m) != nil {
		return false, nil
	}
	whole = true
	for i, id := range append(m.Runs, m.Waiting...) {
		r, err := run.Open(disk, filepath.Join(dir, fmt.Sprintf("%08d.run", id.ID)))
		if err != nil {
			whole = false
			continue
		}
		it := r.Iter()
		for it.Next() {
			var rec record
			var ok bool
			if i < len(m.Runs) {
				rec, ok = readRecord(it.Value())
			} else {
				_, rec, ok = readLate(it.Value())
			}
			if !ok {
				whole = false
				continue
			}
			if err := f(string(it.Key()), rec.state, rec.depth); err != nil {
				return whole, errors.Join(err, r.Close())
			}
		}
		whole = whole && it.Err() == nil
		if err := r.Close(); err != nil {
			return whole, err
		}
	}
	return whole, nil
}
