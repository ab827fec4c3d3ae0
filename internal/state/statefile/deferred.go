package statefile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/entry"
	"kumo/internal/state/store"
)

// DeferredName is the file's path in the crawl's folder.
var DeferredName = filepath.Join("state", "deferred")

// FindDeferred returns the last entry of a deferred URL, nil if there is none. It may be called while a crawl runs in
// dir.
func FindDeferred(ctx context.Context, disk vfs.FS, dir, url string) (found *page.Skip, err error) {
	a := &Deferred{disk: disk, dir: dir}
	err = a.Read(0, func(s page.Skip, _ int64) error {
		if s.URL == url {
			found = &s
		}
		return ctx.Err()
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the file does not exist yet, or its end is being written
	}
	return found, err
}

// Deferred is a file of the URLs that were deferred, in that order. A better link may still admit each of them. It is a
// store, so that the file agrees with the journal after a crash.
type Deferred struct {
	*store.Logs
	disk vfs.FS
	dir  string
}

var _ store.Store = (*Deferred)(nil)

// OpenDeferred opens the file of the crawl in dir, truncated to marks.
func OpenDeferred(disk vfs.FS, dir string, marks []store.Mark) (*Deferred, error) {
	if err := disk.MkdirAll(filepath.Join(dir, "state")); err != nil {
		return nil, err
	}
	logs, err := store.OpenLogs(disk, dir, marks, DeferredName)
	if err != nil {
		return nil, err
	}
	return &Deferred{logs, disk, dir}, nil
}

// Put does nothing: fetched URLs are not deferred.
func (a *Deferred) Put(*page.Record) error { return nil }

// PutSkip does nothing: excluded URLs are no longer deferred.
func (a *Deferred) PutSkip(*page.Skip) error { return nil }

// Add stores skips. A nil Deferred stores nothing.
func (a *Deferred) Add(skips []page.Skip) error {
	if a == nil || len(skips) == 0 {
		return nil
	}
	var body, all entry.Encoder
	for i := range skips {
		body.Writer = body.Writer[:0]
		body.Skip(entry.SkipDeferred, &skips[i])
		body.Int(skips[i].Time.UnixMicro())
		body.Writer = appendChecksum(body.Writer)
		all.Writer = append(binary.AppendUvarint(all.Writer, uint64(len(body.Writer))), body.Writer...)
	}
	return a.Append(0, all.Writer)
}

// Read calls f with the skips from an offset on, each with the offset after it. The data must have been passed to the
// operating system.
func (a *Deferred) Read(from int64, f func(s page.Skip, end int64) error) error {
	return ReadDeferred(a.disk, filepath.Join(a.dir, DeferredName), from, f)
}

// ErrDeferred reports a damaged file of deferred URLs.
var ErrDeferred = errors.New("the file is damaged")

// ReadDeferred calls f with the content of a file of deferred URLs from an offset on, each with the offset after it.
func ReadDeferred(disk vfs.FS, name string, from int64, f func(s page.Skip, end int64) error) error {
	src, err := disk.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // read only
	if _, err := io.CopyN(io.Discard, src, from); err != nil {
		return fmt.Errorf("read deferred URLs: %w", err)
	}
	var failed error // error of f, not of the file
	err = readFrames(src, func(body []byte, end int64) error {
		body, whole := verifyChecksum(body)
		if !whole {
			return errChecksum
		}
		d := entry.NewDecoder(body[1:])
		s := d.Skip()
		s.Time = time.UnixMicro(d.Int()).UTC()
		if len(d.Rest) > 0 {
			return fmt.Errorf("%s is followed by %d extra bytes", s.URL, len(d.Rest))
		}
		if d.Bad {
			return d.Err()
		}
		failed = f(s, from+end)
		return failed
	})
	switch {
	case err == nil:
		return nil
	case failed != nil:
		return fmt.Errorf("read deferred URLs: %w", err)
	}
	return fmt.Errorf("read deferred URLs: %w: %w", ErrDeferred, err)
}
