package crawl

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"kumo/internal/entry"

	"kumo/internal/page"
	"kumo/internal/seen"
	"kumo/internal/store"
	"kumo/internal/vfs"
)

// deferredName is the file's name in the crawl's folder.
var deferredName = filepath.Join("state", "deferred")

// FindDeferred returns the last word on a URL that was set aside, nil if there is none. It may be called while a crawl
// runs in dir.
func FindDeferred(disk vfs.FS, dir, url string) (found *page.Skip, err error) {
	a := &DeferredFile{disk: disk, dir: dir}
	err = a.read(0, func(s page.Skip, _ int64) error {
		if s.URL == url {
			found = &s
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // there is no such file yet, or its end is just being written
	}
	return found, err
}

// DeferredFile are the URLs that were set aside, in a file, in the order in which they were: a better link may still
// come to each. It is a store like others, so that the file agrees with the journal after a crash.
type DeferredFile struct {
	*store.Logs
	disk vfs.FS
	dir  string
}

var _ store.Store = (*DeferredFile)(nil)

// OpenDeferred opens the file of the crawl in dir, cut back to marks.
func OpenDeferred(disk vfs.FS, dir string, marks []store.Mark) (*DeferredFile, error) {
	if err := disk.MkdirAll(filepath.Join(dir, "state")); err != nil {
		return nil, err
	}
	logs, err := store.OpenLogs(disk, dir, marks, deferredName)
	if err != nil {
		return nil, err
	}
	return &DeferredFile{logs, disk, dir}, nil
}

// Put does nothing: what was fetched is not set aside.
func (a *DeferredFile) Put(*page.Record) error { return nil }

// PutSkip does nothing: what is written down is not set aside any more.
func (a *DeferredFile) PutSkip(*page.Skip) error { return nil }

// add keeps skips. A nil Asides keeps nothing.
func (a *DeferredFile) add(skips []page.Skip) error {
	if a == nil || len(skips) == 0 {
		return nil
	}
	var body, all entry.Encoder
	for i := range skips {
		body.Writer = body.Writer[:0]
		body.Skip(entry.SkipDeferred, &skips[i])
		body.Int(skips[i].Time.UnixMicro())
		body.Writer = seal(body.Writer)
		all.Writer = append(binary.AppendUvarint(all.Writer, uint64(len(body.Writer))), body.Writer...)
	}
	return a.Append(0, all.Writer)
}

// read gives the skips from an offset on, each with the offset behind it. All was handed to the operating system
// before.
func (a *DeferredFile) read(from int64, f func(s page.Skip, end int64) error) error {
	return readDeferred(a.disk, filepath.Join(a.dir, deferredName), from, f)
}

// ErrDeferred is a file of what was set aside that is damaged.
var ErrDeferred = errors.New("it is not as it was written")

func readDeferred(disk vfs.FS, name string, from int64, f func(s page.Skip, end int64) error) error {
	src, err := disk.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // it is only read
	if _, err := io.CopyN(io.Discard, src, from); err != nil {
		return fmt.Errorf("read what was set aside: %w", err)
	}
	var failed error // of who reads, not of the file
	err = readFrames(src, func(body []byte, end int64) error {
		body, whole := unseal(body)
		if !whole {
			return errSum
		}
		d := entry.NewDecoder(body[1:])
		s := d.Skip()
		s.Time = time.UnixMicro(d.Int()).UTC()
		if len(d.Rest) > 0 {
			return fmt.Errorf("%s is followed by %d bytes more", s.URL, len(d.Rest))
		}
		if d.Bad {
			return d.Fault()
		}
		failed = f(s, from+end)
		return failed
	})
	switch {
	case err == nil:
		return nil
	case failed != nil:
		return fmt.Errorf("read what was set aside: %w", err)
	}
	return fmt.Errorf("read what was set aside: %w: %w", ErrDeferred, err)
}

// readFrames calls f with bodies that have their lengths before them, and with the offset behind each. A body holds
// until f returns.
func readFrames(src io.Reader, f func(body []byte, end int64) error) error {
	in := bufio.NewReaderSize(src, 1<<20)
	var body []byte
	for end := int64(0); ; {
		n, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || n == 0 || n > maxAside {
			return errors.Join(err, entry.ErrShort)
		}
		body = slices.Grow(body[:0], int(n))[:n]
		if _, err := io.ReadFull(in, body); err != nil {
			return err
		}
		end += int64(len(binary.AppendUvarint(nil, n))) + int64(n)
		if err := f(body, end); err != nil {
			return err
		}
	}
}

var errSum = errors.New("an entry has another checksum")

// seal appends the checksum of an entry's body.
func seal(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}

// unseal returns a body that was sealed, which is not empty, and whether it is as it was.
func unseal(sealed []byte) (body []byte, whole bool) {
	n := len(sealed) - crc32.Size
	if n < 1 {
		return nil, false
	}
	body = sealed[:n]
	return body, crc32.Checksum(body, castagnoli) == binary.LittleEndian.Uint32(sealed[n:])
}

const maxAside = 1 << 20 // bytes of an entry

// writeDeferred says of what was set aside that no better link came.
func (e *Engine) writeDeferred(ctx context.Context) error {
	if e.files.deferred == nil {
		return nil
	}
	if err := e.ledger.Commit(); err != nil { // which hands all to the operating system
		return err
	}
	var b batch
	upTo := e.files.deferredRead
	put := func() error {
		b.entries.DeferredRead(upTo)
		if err := e.commitBatch(&b, nil, nil); err != nil {
			return err
		}
		e.files.deferredRead = upTo
		b.reset()
		return nil
	}
	err := e.files.deferred.read(e.files.deferredRead, func(s page.Skip, end int64) error {
		state, _, err := e.known.seen.Look(s.URL)
		if err == nil {
			err = ctx.Err() // there may be very many
		}
		if err != nil {
			return err
		}
		if upTo = end; state == seen.Deferred {
			b.entries.Skip(entry.SkipNew, &s)
			b.skips = append(b.skips, s)
		}
		if len(b.skips) < maxKept {
			return nil
		}
		return put()
	})
	if err != nil || upTo == e.files.deferredRead {
		return err
	}
	return put()
}
