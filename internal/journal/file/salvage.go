package file

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kumo/internal/vfs"
)

// Salvage calls f with every whole batch in the segments of the journal in dir, whatever lies between them, and returns
// how many bytes were none. A batch's own bytes may look like one where its frame is damaged, if whoever chose them
// wanted that: f must not trust a batch further than what a page may say.
func Salvage(disk vfs.FS, dir string, f func(batch []byte) error) (lost int64, err error) {
	names, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return 0, nil //nolint:nilerr // a journal in one file, of another version
	}
	slices.Sort(names)
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return lost, err
		}
		rest := text[min(headLen, len(text)):]
		for len(rest) > 0 {
			if !isFrame(rest) {
				rest = rest[1:]
				lost++
				continue
			}
			n := int(binary.LittleEndian.Uint32(rest))
			if err := f(rest[frameLen:][:n]); err != nil {
				return lost, err
			}
			rest = rest[frameLen+n:]
		}
	}
	return lost, nil
}
