package warc

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"kumo/internal/state/store"
)

// Mark passes all records to the operating system and returns the lengths of all open files and their indexes.
func (s *Store) Mark() ([]store.Mark, error) {
	s.mu.Lock()
	s.toFinalize = slices.Clone(s.full)
	s.marked = slices.Clone(s.full)
	if s.cur != nil {
		s.marked = append(s.marked, s.cur)
	}
	s.mu.Unlock()
	var marks []store.Mark
	var err error
	for _, f := range s.marked {
		if marks, err = f.mark(marks); err != nil {
			return nil, err
		}
	}
	return marks, nil
}

// Sync makes the files of the last Mark durable.
func (s *Store) Sync() error {
	for _, f := range s.marked {
		if err := f.sync(); err != nil {
			return err
		}
	}
	return nil
}

// Finalize gives the files that were full at the last Mark their final names.
func (s *Store) Finalize() error {
	for _, f := range s.marked {
		f.committed = f.marked
	}
	for len(s.toFinalize) > 0 {
		f := s.toFinalize[0]
		if err := f.finalize(); err != nil {
			return err
		}
		s.toFinalize = s.toFinalize[1:]
		s.removeFile(f)
		if s.cfg.Closed != nil {
			s.cfg.Closed()
		}
	}
	return nil
}

func (s *Store) removeFile(f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(other *file) bool { return other == f }
	s.full = slices.DeleteFunc(s.full, is)
	s.marked = slices.DeleteFunc(s.marked, is)
}

// Close gives all files their final names and merges their indexes into the crawl's index.cdxj. A file with uncommitted
// records is closed without a final name; the next Open truncates it.
func (s *Store) Close() error {
	s.mu.Lock()
	files := s.full
	if s.cur != nil {
		files = append(files, s.cur)
	}
	s.cur, s.full, s.marked, s.toFinalize = nil, nil, nil, nil
	s.mu.Unlock()
	var failed error
	for _, f := range files {
		if f.committed == f.records.Len() {
			failed = errors.Join(failed, f.finalize())
		} else {
			failed = errors.Join(failed, f.close())
		}
	}
	return errors.Join(failed, s.mergeIndex())
}

// mergeIndex merges the indexes of all files into a new index.cdxj. They are sorted, so one pass is enough.
func (s *Store) mergeIndex() error {
	names, err := s.disk.List(s.dir())
	if err != nil {
		return err
	}
	var parts []string
	for _, name := range names {
		if strings.HasSuffix(name, ".cdxj") {
			parts = append(parts, filepath.Join(s.dir(), name))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return mergeLines(s.disk, parts, filepath.Join(s.cfg.Dir, "index.cdxj"), maxFanIn)
}
