// Package records removes damaged entries from a crawl's record files, so that the remaining WARC files, indexes, lists
// and logs are consistent. The caller names the entries to remove (see [Drop]). The package itself finds unreadable
// data. New files are written next to the old ones, and only for files that lose entries.
package records

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
	"kumo/internal/state/store/crawllog"
	"kumo/internal/state/store/jsonl"
	"kumo/internal/state/store/warc"
)

// A Drop lists entries to remove. File names are relative to the crawl's folder, with slashes.
type Drop struct {
	URLs   map[string]bool           // all visits of a URL
	Places map[string]map[int64]bool // records and lines by file and offset
}

// NewDrop returns an empty Drop.
func NewDrop() *Drop { return &Drop{URLs: map[string]bool{}, Places: map[string]map[int64]bool{}} }

// Add adds the entry at an offset of a file.
func (d *Drop) Add(file string, offset int64) {
	if d.Places[file] == nil {
		d.Places[file] = map[int64]bool{}
	}
	d.Places[file][offset] = true
}

// Dropped counts removed entries.
type Dropped struct {
	Visits map[string]int64 // visits removed with their records, by URL
	Lines  int64
}

// Clean removes the entries in drop, and unreadable ones. All WARC files in dir must be closed. Lines on records in
// missing files are removed, too, unless moved is true: the files were moved on purpose.
func Clean(dir string, drop *Drop, moved bool) (Dropped, error) {
	c := cleaner{dir: dir, drop: drop, movedAway: moved, present: map[string]bool{}, moved: map[string]map[int64]int64{}}
	c.done.Visits = map[string]int64{}
	names, err := vfs.OS.List(filepath.Join(dir, "warc"))
	if err != nil {
		return c.done, err
	}
	for _, name := range names {
		c.present[name] = true
	}
	if err := EachWARC(dir, c.warc); err != nil {
		return c.done, fmt.Errorf("clean %w", err)
	}
	for _, l := range []struct {
		name string
		keep func(at int64, line []byte) []byte
	}{{"pages.jsonl", c.page}, {"crawl.log", c.visit}, {"text.jsonl", c.text}, {"fields.jsonl", c.fields},
		{"skipped.jsonl", c.skip}} {
		if err := c.lines(l.name, l.keep); err != nil {
			return c.done, fmt.Errorf("clean %s: %w", l.name, err)
		}
	}
	return c.done, nil
}

type cleaner struct {
	dir       string
	drop      *Drop
	done      Dropped
	movedAway bool                       // missing WARC files were moved on purpose
	present   map[string]bool            // files in the folder warc
	moved     map[string]map[int64]int64 // old to new offsets of kept responses, by rewritten WARC file
}

func (c *cleaner) path(name string) string { return filepath.Join(c.dir, filepath.FromSlash(name)) }

type span struct{ at, length int64 }

type group struct {
	url, id  string
	spans    []span
	metadata bool
	bad      bool
}

// warc rewrites a WARC file if something in it must be removed.
func (c *cleaner) warc(name string, src io.ReaderAt, in *warc.Reader) error {
	kept, all := c.groups(name, in)
	stem, _, _ := strings.Cut(name, ".warc")
	if all {
		return c.index(stem, name, nil)
	}
	moved := map[int64]int64{}
	err := c.write("warc/"+name, func(w *bufio.Writer) error {
		at := int64(0)
		for _, g := range kept {
			moved[g.spans[0].at] = at
			for _, s := range g.spans {
				if _, err := io.Copy(w, io.NewSectionReader(src, s.at, s.length)); err != nil {
					return err
				}
				at += s.length
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.moved[name] = moved
	return c.index(stem, name, moved)
}

// groups reads a file and returns the visits to keep. all reports whether nothing is removed.
func (c *cleaner) groups(name string, in *warc.Reader) (kept []group, all bool) {
	all = true
	gone := c.drop.Places["warc/"+name]
	var g *group
	end := func() {
		switch {
		case g == nil:
		case g.bad || !g.metadata || c.drop.URLs[g.url]:
			all = false
			c.done.Visits[g.url]++
		default:
			kept = append(kept, *g)
		}
		g = nil
	}
	for {
		at := in.Offset()
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			end()
			return kept, all
		}
		if rec == nil { // it may belong to the current visit, or begin another
			all = false
			in.Skip()
			continue
		}
		bad := err != nil || gone[at]
		switch {
		case rec.Fields["WARC-Type"] == "warcinfo":
			end()
			if bad {
				all = false
				continue
			}
			kept = append(kept, group{spans: []span{{rec.Offset, rec.Length}}})
		case rec.BeginsVisit():
			end()
			g = &group{url: rec.Fields["WARC-Target-URI"], id: rec.ID(), spans: []span{{rec.Offset, rec.Length}}, bad: bad}
		default:
			if g == nil || rec.ResponseID() != g.id { // of a visit whose response cannot be read
				all = false
				continue
			}
			if bad || rec.PageURI() != g.url {
				g.bad = true
				continue
			}
			g.spans = append(g.spans, span{rec.Offset, rec.Length})
			g.metadata = g.metadata || rec.Fields["WARC-Type"] == "metadata"
		}
	}
}

// index rewrites a file's index, sorted and with new offsets. moved is nil if no record has moved.
func (c *cleaner) index(stem, name string, moved map[int64]int64) error {
	file := "warc/" + stem + ".cdxj"
	text, err := os.ReadFile(c.path(file))
	lost := errors.Is(err, fs.ErrNotExist)
	if err != nil && !lost {
		return err
	}
	gone := c.drop.Places[file]
	var lines [][]byte
	at := int64(0)
	for l := range bytes.Lines(text) {
		here := at
		at += int64(len(l))
		x, err := warc.ParseIndexLine(bytes.TrimSuffix(l, []byte("\n")))
		if err != nil || gone[here] || x.File != name || c.drop.URLs[x.URL] || l[len(l)-1] != '\n' {
			c.done.Lines++
			continue
		}
		if moved != nil {
			to, stays := moved[x.Offset]
			if !stays {
				c.done.Lines++
				continue
			}
			l = bytes.Replace(l, fmt.Appendf(nil, `,"offset":"%d"`, x.Offset), fmt.Appendf(nil, `,"offset":"%d"`, to), 1)
		}
		lines = append(lines, l)
	}
	slices.SortFunc(lines, bytes.Compare)
	lines = slices.CompactFunc(lines, bytes.Equal)
	if now := bytes.Join(lines, nil); lost || !bytes.Equal(now, text) {
		return c.write(file, func(w *bufio.Writer) error { _, err := w.Write(now); return err })
	}
	return nil
}

// lines rewrites a file of lines if keep changes any. keep returns the new line, or nil to remove it.
func (c *cleaner) lines(name string, keep func(at int64, line []byte) []byte) error {
	src, err := vfs.OS.Open(c.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer src.Close()
	gone := c.drop.Places[name]
	same := true
	err = c.write(name, func(w *bufio.Writer) error {
		torn, err := store.EachLine(src, func(line []byte, at int64) error {
			var now []byte
			if !gone[at] {
				now = keep(at, line)
			}
			if now == nil {
				c.done.Lines++
				same = false
				return nil
			}
			same = same && bytes.Equal(now, line)
			if _, err := w.Write(now); err != nil {
				return err
			}
			return w.WriteByte('\n')
		})
		if err == nil && same && torn == 0 {
			return errUnchanged
		}
		return err
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

var errUnchanged = errors.New("nothing has changed")

func (c *cleaner) page(_ int64, line []byte) []byte {
	p, err := jsonl.ParsePage(line)
	if err != nil || c.drop.URLs[p.URL] {
		return nil
	}
	return c.relocate(line, p.WARC, p.Offset)
}

func (c *cleaner) fields(_ int64, line []byte) []byte {
	f, err := jsonl.ParseFields(line)
	if err != nil || c.drop.URLs[f.URL] {
		return nil
	}
	return c.relocate(line, f.WARC, f.Offset)
}

// relocate returns the line with the new offset of its record; nil if the record was removed.
func (c *cleaner) relocate(line []byte, warc string, offset int64) []byte {
	if warc != "" && !c.movedAway && !c.present[warc] {
		return nil
	}
	moved := c.moved[warc]
	if moved == nil {
		return line
	}
	to, stays := moved[offset]
	if !stays {
		return nil
	}
	place := func(offset int64) []byte {
		return []byte(`"warc":"` + warc + `","offset":` + strconv.FormatInt(offset, 10))
	}
	return bytes.Replace(line, place(offset), place(to), 1)
}

func (c *cleaner) visit(_ int64, line []byte) []byte {
	if e, err := crawllog.Parse(line); err != nil || c.drop.URLs[e.URL] {
		return nil
	}
	return line
}

func (c *cleaner) text(_ int64, line []byte) []byte {
	var t struct{ URL string }
	if err := json.Unmarshal(line, &t); err != nil || c.drop.URLs[t.URL] {
		return nil
	}
	return line
}

func (c *cleaner) skip(_ int64, line []byte) []byte {
	if _, err := jsonl.ParseSkip(line); err != nil {
		return nil
	}
	return line
}

// write durably replaces a file with the data that fill writes.
func (c *cleaner) write(name string, fill func(*bufio.Writer) error) error {
	to := c.path(name)
	tmp := to + ".tmp"
	f, err := os.Create(tmp)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 256<<10)
	if err = fill(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return vfs.OS.Rename(tmp, to)
}
