package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/colinmarc/hdfs/v2"
)

// readTries is how often a read is begun anew where it stands; the library itself has asked all DataNodes each time.
const readTries = 6

// Open opens a file for reading.
func (p *Place) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	full, err := p.path(name)
	if err != nil {
		return nil, err
	}
	return p.open(ctx, full, offset, length)
}

func (p *Place) open(ctx context.Context, full string, offset, length int64) (*reader, error) {
	r := &reader{place: p, ctx: ctx, name: full, at: offset}
	if err := r.open(); err != nil {
		return nil, p.explain(ctx, "open", full, err)
	}
	r.info = r.file.Stat()
	r.id = fileID(r.info)
	r.end = r.info.Size()
	if length >= 0 {
		r.end = min(r.end, offset+length)
	}
	return r, nil
}

type reader struct {
	place   *Place
	ctx     context.Context
	name    string
	id      uint64 // of the file, which another may replace
	at, end int64
	info    fs.FileInfo      // when it was opened
	file    *hdfs.FileReader // nil when it failed or was closed
	closed  bool
}

// open begins where the reader stands.
func (r *reader) open() error {
	return r.place.do(r.ctx, func(client *hdfs.Client) error {
		f, err := client.Open(r.name)
		if err != nil {
			return err
		}
		if f.Stat().IsDir() {
			return fs.ErrNotExist // a folder is no file
		}
		if at := min(r.at, f.Stat().Size()); at > 0 {
			if _, err := f.Seek(at, io.SeekStart); err != nil {
				return err
			}
		}
		r.file = f
		return nil
	})
}

func fileID(info fs.FileInfo) uint64 {
	if status, is := info.Sys().(*hdfs.FileStatus); is {
		return status.GetFileId()
	}
	return 0
}

func (r *reader) Read(b []byte) (int, error) {
	if r.closed {
		return 0, fs.ErrClosed
	}
	if r.at >= r.end {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), r.end-r.at)]
	pause := firstPause
	for try := 1; ; try++ {
		n, err := r.read(b)
		r.at += int64(n)
		if n > 0 || err == nil {
			return n, nil
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // it was longer when it was opened
		}
		if try == readTries || r.ctx.Err() != nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errReplaced) {
			return 0, r.place.explain(r.ctx, "read", r.name, err)
		}
		if err := sleep(r.ctx, pause); err != nil {
			return 0, err
		}
		pause = min(2*pause, longestPause)
	}
}

var errReplaced = errors.New("another file has taken its place meanwhile")

// read reads once, and gives the file up when that fails.
func (r *reader) read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.file == nil {
		if err := r.open(); err != nil {
			return 0, err
		}
		if fileID(r.file.Stat()) != r.id {
			return 0, fmt.Errorf("read from byte %d on: %w", r.at, errReplaced)
		}
	}
	n, err := r.file.Read(b)
	if err != nil {
		_ = r.file.Close() // it failed
		r.file = nil
	}
	return n, err
}

func (r *reader) Close() error {
	r.closed = true
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}
