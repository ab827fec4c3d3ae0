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

// A SeedEntry is a URL that adds its host to the scope: a seed, or the target of a seed's redirect. In a crawl of
// several nodes each node has all of them, including those that other nodes fetch.
type SeedEntry struct {
	URL      string
	Seed     bool // named by the user in this form: it is trusted, and may be at a private address
	Redirect bool // target of a redirect, which is reported to other nodes
}

// ScopeSeedsName is the file's path in the crawl's folder.
var ScopeSeedsName = filepath.Join("state", "roots")

// ScopeSeeds is a file of the URLs that add hosts to the crawl's scope, in order of arrival. There may be millions:
// memory contains only hashes of them, and a checkpoint only the file's length. It is a store, so that the file agrees
// with the journal after a crash.
type ScopeSeeds struct {
	*store.Logs
	disk vfs.FS
	dir  string
}

var _ store.Store = (*ScopeSeeds)(nil)

// OpenScopeSeeds opens the file of the crawl in dir, truncated to marks.
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

// Put does nothing: a scope seed is known before it is fetched.
func (r *ScopeSeeds) Put(*page.Record) error { return nil }

// PutSkip does nothing: an excluded scope seed stays one.
func (r *ScopeSeeds) PutSkip(*page.Skip) error { return nil }

// Add stores an entry. A nil ScopeSeeds stores nothing.
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

// Each calls f with all entries so far.
func (r *ScopeSeeds) Each(f func(SeedEntry) error) error {
	if r == nil {
		return nil
	}
	marks, err := r.Mark() // passes all data to the operating system
	if err != nil {
		return err
	}
	return ReadScopeSeeds(r.disk, filepath.Join(r.dir, ScopeSeedsName), marks[0].Length, f)
}

// ReadScopeSeeds calls f with the entries in a file of scope seeds up to a length.
func ReadScopeSeeds(disk vfs.FS, name string, length int64, f func(SeedEntry) error) error {
	if length == 0 {
		return nil
	}
	src, err := disk.Open(name)
	if err != nil {
		return fmt.Errorf("read the crawl's seeds: %w", err)
	}
	defer func() { _ = src.Close() }() // read only
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

// parseSeed decodes the body of an entry.
func parseSeed(body []byte) (SeedEntry, error) {
	body, whole := verifyChecksum(body)
	if !whole {
		return SeedEntry{}, ErrScopeSeeds
	}
	return SeedEntry{URL: string(body[1:]), Seed: body[0]&1 != 0, Redirect: body[0]&2 != 0}, nil
}

// ErrScopeSeeds reports a damaged file of scope seeds.
var ErrScopeSeeds = errors.New("the file is damaged")
