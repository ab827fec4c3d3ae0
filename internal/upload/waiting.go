package upload

import (
	"kumo/internal/away"
	"kumo/internal/vfs"
)

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
