package warc

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

// recover restores the state of the folder at the given marks. Open files with marks are truncated and finalized; open
// files without marks are removed.
func (s *Store) recover(marks []store.Mark) error {
	names, err := s.disk.List(s.dir())
	if err != nil {
		return err
	}
	for _, name := range names {
		if final, ok := strings.CutSuffix(name, open); ok && strings.Contains(final, ".warc") {
			if err := s.recoverFile(final, marks); err != nil {
				return fmt.Errorf("recover %s: %w", name, err)
			}
		}
	}
	if err := s.checkLost(marks); err != nil {
		return err
	}
	return s.removeLeftovers()
}

func (s *Store) recoverFile(name string, marks []store.Mark) error {
	length, ok := store.FindMark(marks, "warc/"+name+open)
	if !ok {
		return s.disk.Remove(filepath.Join(s.dir(), name+open))
	}
	stem, _, _ := strings.Cut(name, ".warc")
	indexLength, _ := store.FindMark(marks, "warc/"+stem+".cdxj"+open)
	f, err := openFile(s.disk, s.dir(), name, length, indexLength)
	if err != nil {
		return err
	}
	return f.finalize()
}

// checkLost returns an error of kind fs.ErrInvalid if a marked file is shorter than its mark.
func (s *Store) checkLost(marks []store.Mark) error {
	for _, m := range marks {
		final, ok := strings.CutSuffix(m.Name, open)
		if !ok || !strings.HasPrefix(final, "warc/") || !strings.Contains(final, ".warc") {
			continue
		}
		size, err := s.disk.Size(filepath.Join(s.cfg.Dir, filepath.FromSlash(final)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // finished files may be moved elsewhere
		}
		if err != nil {
			return err
		}
		if size < m.Length {
			return vfs.Invalidf("%s is %d bytes long, but %d bytes were written to it", final, size, m.Length)
		}
	}
	return nil
}

// removeLeftovers removes files that are useless after a crash: partial indexes, and unsorted indexes that were sorted
// already or whose WARC file is gone.
func (s *Store) removeLeftovers() error {
	for _, dir := range []string{s.dir(), s.cfg.Dir} {
		names, err := s.disk.List(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".cdxj"+open) || strings.Contains(name, ".cdxj.") && strings.HasSuffix(name, temporary) {
				if err := s.disk.Remove(filepath.Join(dir, name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
