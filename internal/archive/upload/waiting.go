package upload

import (
	"cmp"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"kumo/internal/archive/away"
	"kumo/internal/base/vfs"
)

// A waiting file is to be brought to the place.
type waiting struct {
	name string
	size int64
}

// look finds out what waits: each WARC file behind its index, those that failed least first.
func (u *Uploader) look(ending bool) (todo []waiting, err error) {
	names, err := u.cfg.Disk.List(u.path("warc"))
	if err != nil {
		return nil, err
	}
	here := make(map[string]bool, len(names))
	for _, name := range names {
		here[name] = true
	}
	for _, name := range names {
		stem, isIndex := strings.CutSuffix(name, ".cdxj")
		switch {
		case isIndex && !u.closed(here, stem), !isIndex && !isWARC(name):
			continue // it grows, or is being written
		case !isIndex && !here[indexOf(name)]:
			continue // it is of no use without
		}
		if todo, err = u.add(todo, "warc/"+name); err != nil {
			return nil, err
		}
	}
	if first := u.cfg.First; !ending && first != "" {
		if _, is := u.there.Get(first); !is {
			if todo, err = u.addGrown(todo, first); err != nil {
				return nil, err
			}
		}
	}
	if ending {
		var grown []waiting // which go first: a process that is interrupted may not have time for all
		for _, name := range u.cfg.Grow {
			if grown, err = u.addGrown(grown, name); err != nil {
				return nil, err
			}
		}
		todo = append(grown, todo...)
	}
	u.tellWaiting(todo)
	slices.SortStableFunc(todo, func(a, b waiting) int { return cmp.Compare(u.tries[a.name], u.tries[b.name]) })
	return todo, nil
}

var extensions = []string{".warc.gz", ".warc.zst", ".warc"}

func isWARC(name string) bool {
	return slices.ContainsFunc(extensions, func(ext string) bool { return strings.HasSuffix(name, ext) })
}

// indexOf is the name of a WARC file's index.
func indexOf(name string) string {
	stem, _, _ := strings.Cut(name, ".warc")
	return stem + ".cdxj"
}

// closed reports whether a WARC file is closed, which is here or in the place: its index is whole before.
func (u *Uploader) closed(here map[string]bool, stem string) bool {
	return slices.ContainsFunc(extensions, func(ext string) bool {
		_, there := u.there.Get("warc/" + stem + ext)
		return there || here[stem+ext]
	})
}

// add adds a file that is not in the place with the size that it has here.
func (u *Uploader) add(todo []waiting, name string) ([]waiting, error) {
	if u.done[name] {
		return todo, nil
	}
	size, err := u.cfg.Disk.Size(u.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return todo, nil // somebody has moved it away
	}
	if err != nil {
		return nil, err
	}
	if e, is := u.there.Get(name); is && e.Size == size {
		u.done[name] = true
		return todo, nil
	}
	return append(todo, waiting{name, size}), nil
}

// addGrown adds a file that is not in the place as it is here.
func (u *Uploader) addGrown(todo []waiting, name string) ([]waiting, error) {
	if u.grown[name] {
		return todo, nil
	}
	size, err := u.cfg.Disk.Size(u.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		u.grown[name] = true
		return todo, nil
	}
	if err != nil {
		return nil, err
	}
	if e, is := u.there.Get(name); is && e.Size == size {
		sum, err := u.digestHere(name)
		if err != nil {
			return nil, err
		}
		if hex.EncodeToString(sum[:]) == e.SHA256 {
			u.grown[name] = true
			return todo, nil
		}
	}
	return append(todo, waiting{name, size}), nil
}

// Waiting are the files of the crawl in a folder that its place does not have, as its manifest says; nothing changes.
func Waiting(disk vfs.FS, dir string, grow []string, there *away.Manifest) (names []string, bytes int64, err error) {
	u := &Uploader{cfg: Config{Disk: disk, Dir: dir, Grow: grow}, there: there, done: map[string]bool{},
		grown: map[string]bool{}, tries: map[string]int{}}
	todo, err := u.look(true)
	for _, f := range todo {
		names, bytes = append(names, f.name), bytes+f.size
	}
	return names, bytes, err
}
