package history

import (
	"io"
	"io/fs"

	"kumo/internal/base/vfs"
)

// nothing is an empty disk that cannot be written to.
type nothing struct{ vfs.FS }

func (nothing) MkdirAll(string) error              { return nil }
func (nothing) List(string) ([]string, error)      { return nil, nil }
func (nothing) Open(string) (io.ReadCloser, error) { return nil, fs.ErrNotExist }
