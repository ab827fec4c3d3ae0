package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"kumo/internal/archive/place"

	"github.com/colinmarc/hdfs/v2"
)

// Open opens a file for reading. The library itself retries failed reads with all DataNodes.
func (p *Place) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	full, err := p.path(name)
	if err != nil {
		return nil, err
	}
	r := &reader{place: p, name: full, ResumingReader: place.ResumingReader{Ctx: ctx, At: offset, Pause: firstPause}}
	r.Reopen, r.IsPermanent = r.reopen, func(err error) bool {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errReplaced)
	}
	r.Explain = func(err error) error { return p.explain(ctx, "read", full, err) }
	f, err := r.open()
	if err != nil {
		return nil, p.explain(ctx, "open", full, err)
	}
	r.Body, r.id, r.End = f, fileID(f), f.Stat().Size()
	if length >= 0 {
		r.End = min(r.End, offset+length)
	}
	return r, nil
}

type reader struct {
	place.ResumingReader
	place *Place
	name  string
	id    uint64 // ID of the file, to detect that it was replaced
}

// open starts reading at the reader's offset.
func (r *reader) open() (f *hdfs.FileReader, err error) {
	err = r.place.do(r.Ctx, func(client *hdfs.Client) error {
		if f, err = client.Open(r.name); err != nil {
			return err
		}
		if f.Stat().IsDir() {
			return fs.ErrNotExist // a folder is not a file
		}
		if at := min(r.At, f.Stat().Size()); at > 0 {
			_, err = f.Seek(at, io.SeekStart)
		}
		return err
	})
	return f, err
}

var errReplaced = errors.New("the file was replaced while it was read")

func (r *reader) reopen() (io.ReadCloser, error) {
	f, err := r.open()
	if err != nil {
		return nil, err
	}
	if fileID(f) != r.id {
		return nil, errors.Join(fmt.Errorf("read from byte %d on: %w", r.At, errReplaced), f.Close())
	}
	return f, nil
}

func fileID(f *hdfs.FileReader) uint64 {
	if status, is := f.Stat().Sys().(*hdfs.FileStatus); is {
		return status.GetFileId()
	}
	return 0
}
