package place

import (
	"io"
	"io/fs"

	"kumo/internal/base/vfs"
)

// A Spool is a Writer that buffers a file locally until it is closed.
type Spool struct {
	data  *vfs.Spool // nil once closed or aborted
	also  io.Writer
	store func(data *vfs.Spool) error
	err   error // first error of Write
}

// NewSpool returns a writer to data, whose Close calls store and then frees data. Bytes are also written to also, which
// must not fail, such as a hash.
func NewSpool(data *vfs.Spool, also io.Writer, store func(data *vfs.Spool) error) *Spool {
	return &Spool{data: data, also: also, store: store}
}

func (s *Spool) Write(b []byte) (int, error) {
	if s.data == nil {
		return 0, fs.ErrClosed
	}
	n, err := s.data.Write(b)
	_, _ = s.also.Write(b[:n])
	if s.err == nil {
		s.err = err
	}
	return n, err
}

// Close stores the file, unless a Write has failed.
func (s *Spool) Close() error {
	if s.data == nil {
		return fs.ErrClosed
	}
	defer s.Abort()
	if s.err != nil {
		return s.err
	}
	return s.store(s.data)
}

// Abort discards the file.
func (s *Spool) Abort() {
	if s.data != nil {
		s.data.Free()
		s.data = nil
	}
}
