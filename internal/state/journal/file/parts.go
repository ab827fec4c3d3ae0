package file

import (
	"path/filepath"

	"kumo/internal/base/vfs"
	"kumo/internal/state/journal"
)

// A Part is a segment file up to a length.
type Part struct {
	Name   string // in the journal's folder
	Length int64
}

// Parts returns the files of the journal in dir up to a position, which must be the end of a batch. The journal may be
// open and in use. Data after the position is not included.
func Parts(disk vfs.FS, dir string, upTo journal.Position) ([]Part, error) {
	j := &Journal{disk: disk, dir: dir}
	if err := j.list(); err != nil {
		return nil, err
	}
	var parts []Part
	for i, s := range j.segments {
		if s.start > upTo || s.start == upTo && i > 0 {
			break
		}
		frames := min(max(s.frames, 0), int64(upTo-s.start))
		parts = append(parts, Part{filepath.Base(j.name(s.start)), int64(headLen) + frames})
	}
	return parts, nil
}
