// Package statefile stores the state that a crawl keeps in files of its own, outside of its databases.
//
// The journal, the URL database and the frontier have their own packages. This package stores scope seeds, deferred
// URLs, the queue of abandoned URLs with their origins, and the rules of robots.txt files.
//
// All files only grow within a run, and agree with the journal after a crash. Scope seeds, deferred URLs and robots.txt
// rules are stores that are truncated to their marks. The abandoned queue has the state that a checkpoint names.
package statefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/entry"
	"kumo/internal/state/store"
)

// A SeedEntry takes its host into scope: a seed, or what a seed redirects to. In a crawl of several nodes each node has
// all of them, those too that others fetch.
type SeedEntry struct {
	URL      string
	Seed     bool // the user named it, as it is written here: it is trusted, and may be at a private address
	Redirect bool // a redirect led there: other nodes are told
}

// ScopeSeedsName is the file's name in the crawl's folder.
var ScopeSeedsName = filepath.Join("state", "roots")

// ScopeSeeds are what takes hosts into the crawl's scope, in a file, in the order in which they came. There may be
// millions: memory has hashes of them, and a checkpoint names the file's length alone. It is a store like others, so
// that the file agrees with the journal after a crash.
type ScopeSeeds struct {
	*store.Logs
	disk vfs.FS
	dir  string
}

var _ store.Store = (*ScopeSeeds)(nil)

// OpenScopeSeeds opens the file of the crawl in dir, cut back to marks.
func OpenScopeSeeds(disk vfs.FS, dir string, marks []store.Mark) (*ScopeSeeds, error) {
	if err := disk.MkdirAll(filepath.Join(dir, "state")); err != nil {
		return nil, err
	}
	logs, err := store.OpenLogs(disk, dir, marks, ScopeSeedsName)
	if err != nil {
		return nil, err
	}
	return &ScopeSeeds{logs, disk, dir}, nil
}

// Put does nothing: a root is known before it is fetched.
func (r *ScopeSeeds) Put(*page.Record) error { return nil }

// PutSkip does nothing: a root that is left out stays one.
func (r *ScopeSeeds) PutSkip(*page.Skip) error { return nil }

// Add keeps one. A nil ScopeSeeds keeps nothing.
func (r *ScopeSeeds) Add(b SeedEntry) error {
	if r == nil {
		return nil
	}
	var body entry.Encoder
	body.Flags(b.Seed, b.Redirect)
	body.Writer = append(body.Writer, b.URL...)
	body.Writer = appendChecksum(body.Writer)
	return r.Append(0, append(binary.AppendUvarint(nil, uint64(len(body.Writer))), body.Writer...))
}

// EachEarlier calls f with all of them so far.
func (r *ScopeSeeds) Each(f func(SeedEntry) error) error {
	if r == nil {
		return nil
	}
	marks, err := r.Mark() // hands all to the operating system
	if err != nil {
		return err
	}
	return ReadScopeSeeds(r.disk, filepath.Join(r.dir, ScopeSeedsName), marks[0].Length, f)
}

// ReadScopeSeeds calls f with what a file of scope seeds has up to a length.
func ReadScopeSeeds(disk vfs.FS, name string, length int64, f func(SeedEntry) error) error {
	if length == 0 {
		return nil
	}
	src, err := disk.Open(name)
	if err != nil {
		return fmt.Errorf("read the crawl's seeds: %w", err)
	}
	defer func() { _ = src.Close() }() // it is only read
	var read int64
	err = readFrames(io.LimitReader(src, length), func(body []byte, end int64) error {
		read = end
		r, err := parseSeed(body)
		if err != nil {
			return err
		}
		return f(r)
	})
	if err == nil && read != length || errors.Is(err, entry.ErrShort) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF) {
		err = ErrScopeSeeds
	}
	if err != nil {
		return fmt.Errorf("read the crawl's seeds from %s: %w", name, err)
	}
	return nil
}

// parseSeed reads the body of an entry.
func parseSeed(body []byte) (SeedEntry, error) {
	body, whole := verifyChecksum(body)
	if !whole {
		return SeedEntry{}, ErrScopeSeeds
	}
	return SeedEntry{URL: string(body[1:]), Seed: body[0]&1 != 0, Redirect: body[0]&2 != 0}, nil
}

// ErrScopeSeeds is a file of scope seeds that is damaged.
var ErrScopeSeeds = errors.New("it is not as it was written")
