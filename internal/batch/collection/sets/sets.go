// Package sets provides collections that ship with kumo, as files to start from.
package sets

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"kumo/internal/base/vfs"
	"os"
	"path"
	"path/filepath"
)

//go:embed news27/*.yaml
var files embed.FS

// A Set is a group of collections that are run together.
type Set struct {
	Name        string
	Description string // one line
}

// All returns the sets.
func All() []Set {
	return []Set{{"news27", "164 news sites and governments in 27 languages, 151 of which have a known address"}}
}

// Open returns the files of a set, one per collection, named by its code: zh.yaml.
func Open(name string) (fs.FS, error) {
	for _, s := range All() {
		if s.Name == name {
			return fs.Sub(files, name)
		}
	}
	return nil, fmt.Errorf("%q is not a set of collections: %w", name, fs.ErrNotExist)
}

// An Outcome is the result of writing a file.
type Outcome string

// Outcomes of Write.
const (
	Written     Outcome = "written"
	Same        Outcome = "already present" // exists with the same content
	Edited      Outcome = "edited: left unchanged"
	Overwritten Outcome = "overwritten"
)

// Write writes a set's files to a folder, which it creates, and reports the outcome of each, in order of their names.
// An existing file with other content is left unchanged unless force is set.
func Write(set fs.FS, dir string, force bool, told func(name string, o Outcome)) error {
	names, err := fs.Glob(set, "*.yaml")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		data, err := fs.ReadFile(set, name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, path.Base(name))
		o, err := write(to, data, force)
		if err != nil {
			return err
		}
		told(to, o)
	}
	return nil
}

func write(name string, data []byte, force bool) (Outcome, error) {
	there, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Written, vfs.Replace(vfs.OS, name, data)
	case err != nil:
		return "", err
	case bytes.Equal(there, data):
		return Same, nil
	case !force:
		return Edited, nil
	}
	return Overwritten, vfs.Replace(vfs.OS, name, data)
}
