package place

import (
	"io"
	"io/fs"

	"kumo/internal/base/vfs"
)

// A Spool is a Writer that keeps what is written on this machine until it is closed.
type Spool struct {
	data  *vfs.Spool // nil once closed or aborted
	also  io.Writer
	store func(data *vfs.Spool) error
	err   error // the first of Write
}

// NewSpool returns a writer to data, whose Close calls store. What is written also goes to another writer, which never
// fails, such as a hash. The data is freed then.
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

// Close stores what was written, unless a Write has failed.
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

// Abort drops what was written.
func (s *Spool) Abort() {
	if s.data != nil {
		s.data.Free()
		s.data = nil
	}
}
