package captures

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"

	"kumo/internal/base/extsort"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store/warc"
)

// Filter keeps only the captures that choose passes to keep. Each of them then takes about 20 bytes of memory.
func (a *Archive) Filter(choose func(keep func(*Capture) error) error) error {
	chosen, count := map[uint64]struct{}{}, int64(0)
	err := a.write("chosen", func(w *bufio.Writer) error {
		out := json.NewEncoder(w)
		return choose(func(c *Capture) error {
			chosen[c.Head.hash()] = struct{}{}
			if c.Body != nil {
				chosen[c.Body.hash()] = struct{}{}
			}
			count++
			return out.Encode(c)
		})
	})
	if err != nil {
		return err
	}
	a.capturesFile, a.selected, a.count = filepath.Join(a.temp, "chosen"), chosen, count
	return nil
}

// hash returns a hash that identifies the location.
func (p *Location) hash() uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.WriteString(p.File)
	_, _ = d.Write(binary.BigEndian.AppendUint64(nil, uint64(p.Offset)))
	return d.Sum64()
}

// IsFiltered reports whether captures were removed.
func (a *Archive) IsFiltered() bool { return a.selected != nil }

// IsSelected reports whether the record at a location belongs to a capture. Without a filter all records are selected,
// including those of earlier visits.
func (a *Archive) IsSelected(at Location) bool {
	if a.selected == nil {
		return true
	}
	_, is := a.selected[at.hash()]
	return is
}

// EachEntry calls f once with each index entry of a selected record, in index order. The line has no line feed and is
// valid until f returns.
func (a *Archive) EachEntry(ctx context.Context, f func(x *warc.IndexLine, line []byte) error) (err error) {
	sorter := extsort.New(extsort.Config{Disk: a.cfg.Disk, Dir: filepath.Join(a.temp, "entries"), Memory: 64 << 20})
	defer func() { err = errors.Join(err, sorter.Close()) }()
	err = a.eachEntry(ctx, func(x *warc.IndexLine, line []byte) error {
		if !a.IsSelected(Location{File: x.File, Offset: x.Offset}) {
			return nil
		}
		line = warc.AppendIndexLine(line[:0:0], x) // old indexes have other keys
		return sorter.Add(0, line[:len(line)-1], nil)
	})
	if err != nil {
		return err
	}
	return sorter.EachKey(ctx, func(line, _ []byte) error {
		x, err := warc.ParseIndexLine(line)
		if err != nil {
			return err
		}
		return f(&x, line)
	})
}

// WARCs returns the names of the WARC files, without the suffix ".open".
func (a *Archive) WARCs() ([]string, error) {
	names, err := a.cfg.Disk.List(filepath.Join(a.cfg.Dir, "warc"))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, name := range names {
		name = strings.TrimSuffix(name, openEnding)
		if ext := filepath.Ext(name); strings.Contains(name, ".warc.") && (ext == ".gz" || ext == ".zst") {
			all = append(all, name)
		}
	}
	return all, nil
}

const openEnding = ".open"

// OpenWARC opens a WARC file by a name that WARCs returned.
func (a *Archive) OpenWARC(name string) (vfs.ReaderAt, int64, error) { return a.files.openFile(name) }
