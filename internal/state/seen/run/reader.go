package run

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"kumo/internal/base/varint"
	"kumo/internal/base/vfs"
)

// A Reader is an open run. It is safe for concurrent use.
type Reader struct {
	name   string
	file   vfs.ReaderAt
	size   int64
	count  uint64
	index  index
	shards []shard
	memory int64
}

// Open opens the run at name and reads its index and filters.
func Open(disk vfs.FS, name string) (*Reader, error) {
	size, err := disk.Size(name)
	if err != nil {
		return nil, err
	}
	f, err := disk.OpenAt(name)
	if err != nil {
		return nil, err
	}
	r := &Reader{name: name, file: f, size: size}
	if err := r.load(); err != nil {
		return nil, fmt.Errorf("open run %s: %w", name, errors.Join(err, f.Close()))
	}
	return r, nil
}

func (r *Reader) load() error {
	head, err := r.read(0, int64(len(magic)))
	switch {
	case errors.Is(err, ErrDamaged) || err == nil && !strings.HasPrefix(string(head), family):
		return fmt.Errorf("it does not begin with %q: %w", magic, ErrVersion)
	case err != nil:
		return err
	case string(head) != magic:
		return fmt.Errorf("it begins with %q, this version of kumo reads %q: %w", head, magic, ErrVersion)
	}
	foot, err := r.sealed(r.size-footerLen, footerLen)
	if err != nil {
		return err
	}
	at, n := binary.LittleEndian.Uint64(foot), binary.LittleEndian.Uint64(foot[8:])
	r.count = binary.LittleEndian.Uint64(foot[16:])
	if at > uint64(r.size) || n > uint64(r.size) {
		return ErrDamaged
	}
	b, err := r.sealed(int64(at), int64(n))
	if err != nil {
		return err
	}
	in := &varint.Reader{Rest: b}
	r.index.read(in, int64(at))
	return r.loadFilters(in, at)
}

func (r *Reader) loadFilters(in *varint.Reader, end uint64) error {
	for n := in.Count(); n > 0 && !in.Bad; n-- {
		first := in.Bytes()
		at := in.UintMax(end)
		size := in.UintMax(end - at)
		if in.Bad {
			break
		}
		b, err := r.read(int64(at), int64(size))
		if err != nil {
			return err
		}
		f, err := readFilter(b)
		if err != nil {
			return err
		}
		r.shards = append(r.shards, shard{string(first), f})
		r.memory += int64(size) + int64(len(first))
	}
	r.memory += r.index.bytes()
	if in.Bad {
		return ErrDamaged
	}
	return nil
}

func (r *Reader) read(at, n int64) ([]byte, error) {
	if at < 0 || n < 0 || n > r.size-at {
		return nil, ErrDamaged
	}
	b := make([]byte, n)
	return b, r.readInto(b, at)
}

func (r *Reader) readInto(b []byte, at int64) error {
	n, err := r.file.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return ErrDamaged
	}
	return err
}

func (r *Reader) sealed(at, n int64) ([]byte, error) {
	b, err := r.read(at, n)
	if err != nil {
		return nil, err
	}
	return unseal(b)
}

// May reports whether the run may hold key; hash is the key's. There are no false negatives.
func (r *Reader) May(key string, hash uint64) bool {
	_, f := r.shard(0, key)
	return f != nil && f.Contains(hash)
}

// Get returns the value of key.
func (r *Reader) Get(key []byte) (value []byte, ok bool, err error) {
	return r.Finder().Find(key)
}

// Len returns the number of keys.
func (r *Reader) Len() int64 { return int64(r.count) }

// Size returns the file's length in bytes.
func (r *Reader) Size() int64 { return r.size }

// Memory returns the size of index and filters, in bytes.
func (r *Reader) Memory() int64 { return r.memory }

// Close closes the file. Filters can still be queried.
func (r *Reader) Close() error { return r.file.Close() }

func (r *Reader) damaged(err error) error { return fmt.Errorf("read run %s: %w", r.name, err) }
