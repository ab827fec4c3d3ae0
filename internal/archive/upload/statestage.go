package upload

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"kumo/internal/archive/away"
	"kumo/internal/base/vfs"
)

type stateFile struct {
	name string // relative to the crawl's state, such as "seen/00000001.run"
	size int64
}

// stagingName is the folder in which files of a checkpoint have second names during its upload.
var stagingName = filepath.Join("state", "leaving")

// listFiles returns the files of the current checkpoint, and the bytes of those that are not uploaded.
func (s *States) listFiles() (files []stateFile, cost int64, err error) {
	there := map[string]int64{}
	if s.uploaded != nil {
		for _, f := range s.uploaded.Files {
			there[f.Name] = f.Size
		}
	}
	for _, room := range away.StateSubdirs {
		names, err := s.up.cfg.Disk.List(s.up.cfg.path("state/" + room))
		if err != nil {
			return nil, 0, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".new") || strings.HasSuffix(name, ".tmp") {
				continue
			}
			f := stateFile{name: room + "/" + name}
			f.size, err = s.up.cfg.Disk.Size(s.up.cfg.path("state/" + f.name))
			if errors.Is(err, fs.ErrNotExist) { // not part of the checkpoint
				continue
			}
			if err != nil {
				return nil, 0, err
			}
			files = append(files, f)
			if size, is := there[f.name]; !is || size != f.size || !f.isImmutable() {
				cost += f.size
			}
		}
	}
	return files, cost, nil
}

// isImmutable reports whether a file with its name and length never changes.
func (f *stateFile) isImmutable() bool {
	return strings.HasSuffix(f.name, ".run") || strings.HasPrefix(f.name, "frontier/queue-")
}

func (f *stateFile) staged() string {
	return filepath.Join(stagingName, strings.ReplaceAll(f.name, "/", "."))
}

// stage links files under second names. Files that were removed in the meantime are not part of the checkpoint.
func (s *States) stage(files []stateFile) (staged []stateFile, err error) {
	if err := s.clearStaging(); err != nil {
		return nil, err
	}
	u := s.up
	if err := u.cfg.Disk.MkdirAll(filepath.Join(u.cfg.Dir, stagingName)); err != nil {
		return nil, err
	}
	for _, f := range files {
		from, to := u.cfg.path("state/"+f.name), filepath.Join(u.cfg.Dir, f.staged())
		if !vfs.Link(u.cfg.Disk, from, to) {
			err = copyFile(u.cfg.Disk, from, to, f.size)
		}
		if err == nil {
			staged = append(staged, f)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		err = nil
	}
	return staged, nil
}

func copyFile(disk vfs.FS, from, to string, size int64) (err error) {
	src, err := disk.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dst, err := disk.Append(to)
	if err != nil {
		return err
	}
	_, err = io.CopyN(dst, src, size)
	return errors.Join(err, dst.Close())
}

// clearStaging removes the second names.
func (s *States) clearStaging() error {
	disk, dir := s.up.cfg.Disk, filepath.Join(s.up.cfg.Dir, stagingName)
	names, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		if err == nil {
			err = disk.Remove(filepath.Join(dir, name))
		}
	}
	return err
}
