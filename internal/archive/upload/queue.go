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

// A queue selects the files to upload next from the crawl's folder.
//
// Invariants: a WARC file follows its index. Files with the fewest failures go first. A file that does not change is
// inspected until it is uploaded, and not again.
type queue struct {
	cfg   *Config
	there *away.Manifest
	done  map[string]bool // uploaded files
	grown map[string]bool // growing files that are uploaded with their current content
	tries map[string]int  // failed uploads
}

func newQueue(cfg *Config, there *away.Manifest) *queue {
	return &queue{cfg: cfg, there: there, done: map[string]bool{}, grown: map[string]bool{}, tries: map[string]int{}}
}

// A pendingFile is a file to be uploaded.
type pendingFile struct {
	name string
	size int64
}

// scan lists the files to upload.
func (q *queue) scan(ending bool) (todo []pendingFile, err error) {
	names, err := q.cfg.Disk.List(q.cfg.path("warc"))
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
		case isIndex && !q.closed(here, stem), !isIndex && !isWARC(name):
			continue // not closed yet, or not a WARC file
		case !isIndex && !here[indexOf(name)]:
			continue // it is useless without its index
		}
		if todo, err = q.add(todo, "warc/"+name, false); err != nil {
			return nil, err
		}
	}
	if first := q.cfg.First; !ending && first != "" {
		if _, is := q.there.Get(first); !is {
			if todo, err = q.add(todo, first, true); err != nil {
				return nil, err
			}
		}
	}
	if ending {
		var grown []pendingFile // growing files go first: an interrupted process may not upload all
		for _, name := range q.cfg.Grow {
			if grown, err = q.add(grown, name, true); err != nil {
				return nil, err
			}
		}
		todo = append(grown, todo...)
	}
	slices.SortStableFunc(todo, func(a, b pendingFile) int { return cmp.Compare(q.tries[a.name], q.tries[b.name]) })
	return todo, nil
}

var extensions = []string{".warc.gz", ".warc.zst", ".warc"}

func isWARC(name string) bool {
	return slices.ContainsFunc(extensions, func(ext string) bool { return strings.HasSuffix(name, ext) })
}

// indexOf returns the name of a WARC file's index.
func indexOf(name string) string {
	stem, _, _ := strings.Cut(name, ".warc")
	return stem + ".cdxj"
}

// closed reports whether a WARC file is closed, so that its index is complete: the WARC file has its final name in the
// folder, or is uploaded.
func (q *queue) closed(here map[string]bool, stem string) bool {
	return slices.ContainsFunc(extensions, func(ext string) bool {
		_, there := q.there.Get("warc/" + stem + ext)
		return there || here[stem+ext]
	})
}

// add appends a file unless it is uploaded with its local size and, if it grows, with the same bytes.
func (q *queue) add(todo []pendingFile, name string, grows bool) ([]pendingFile, error) {
	there := q.done
	if grows {
		there = q.grown
	}
	if there[name] {
		return todo, nil
	}
	size, err := q.cfg.Disk.Size(q.cfg.path(name))
	if errors.Is(err, fs.ErrNotExist) { // it was moved away
		there[name] = grows
		return todo, nil
	}
	if err != nil {
		return nil, err
	}
	e, is := q.there.Get(name)
	if is = is && e.Size == size; is && grows {
		sum, err := digestAll(q.cfg.Disk.Open(q.cfg.path(name)))
		if err != nil {
			return nil, err
		}
		is = hex.EncodeToString(sum[:]) == e.SHA256
	}
	if is {
		there[name] = true
		return todo, nil
	}
	return append(todo, pendingFile{name, size}), nil
}

// Pending returns the files of a crawl's folder that are missing in its location's manifest. It changes nothing.
func Pending(disk vfs.FS, dir string, grow []string, there *away.Manifest) (names []string, bytes int64, err error) {
	todo, err := newQueue(&Config{Disk: disk, Dir: dir, Grow: grow}, there).scan(true)
	for _, f := range todo {
		names, bytes = append(names, f.name), bytes+f.size
	}
	return names, bytes, err
}

// drop removes WARC files from the folder that are uploaded and listed, if Config.RemoveUploaded is set. Their indexes
// remain, because they are small.
func (q *queue) drop() error {
	if !q.cfg.RemoveUploaded {
		return nil
	}
	names, err := q.cfg.Disk.List(q.cfg.path("warc"))
	if err != nil {
		return err
	}
	gone := false
	for _, name := range names {
		full := "warc/" + name
		if !isWARC(name) || !q.done[full] || !q.done["warc/"+indexOf(name)] {
			continue
		}
		if err := q.cfg.Disk.Remove(q.cfg.path(full)); err != nil {
			return err
		}
		gone = true
	}
	if !gone {
		return nil
	}
	return q.cfg.Disk.SyncDir(q.cfg.path("warc"))
}
