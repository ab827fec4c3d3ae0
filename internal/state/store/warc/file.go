package warc

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

const open = ".open" // the ending of a file that still grows

// A file is a WARC file with its index.
type file struct {
	disk      vfs.FS
	dir       string
	name      string // final base name of the WARC file
	index     string // final base name of its index
	records   *vfs.Log
	lines     *vfs.Log // the index in the order of arrival
	location  []byte   // the end of the index line that is being added
	marked    int64    // the length of records at the last Mark
	committed int64    // the same, once the mark was journalled
	closed    bool
	closeErr  error // of closing; a file that could not be made durable never gets its final name
}

// openFile opens the file that will be called name, at the given lengths.
func openFile(disk vfs.FS, dir, name string, length, indexLength int64) (*file, error) {
	stem, _, _ := strings.Cut(name, ".warc")
	f := &file{disk: disk, dir: dir, name: name, index: stem + ".cdxj"}
	var err error
	if f.records, err = vfs.OpenLog(disk, f.path(name+open), length); err != nil {
		return nil, err
	}
	if f.lines, err = vfs.OpenLog(disk, f.path(f.index+open), indexLength); err != nil {
		return nil, errors.Join(err, f.records.Close())
	}
	return f, nil
}

// newFile begins the next file with its warcinfo record.
func (s *Store) newFile() (*file, error) {
	name := s.cfg.fileName(s.serial)
	d := s.drafts.get()
	defer s.drafts.put(d)
	d.warcinfo(&s.cfg, name)
	f, err := openFile(s.disk, s.dir(), name, 0, 0)
	if err != nil {
		return nil, err
	}
	s.serial++
	_, err = f.records.Append(d.out)
	return f, err
}

func (f *file) path(name string) string { return filepath.Join(f.dir, name) }

// append adds records and an index line that still lacks where they are.
func (f *file) append(records, line []byte) (offset int64, err error) {
	offset, err = f.records.Append(records)
	if err != nil {
		return offset, err
	}
	return offset, f.addLine(offset, line)
}

// addLine adds the index line of records that lie at offset, if they have one.
func (f *file) addLine(offset int64, line []byte) error {
	if len(line) == 0 {
		return nil
	}
	f.location = append(f.location[:0], `,"offset":"`...)
	f.location = strconv.AppendInt(f.location, offset, 10)
	f.location = append(f.location, `","filename":"`...)
	f.location = append(f.location, f.name...)
	f.location = append(f.location, "\"}\n"...)
	_, err := f.lines.Append(line, f.location)
	return err
}

// mark hands all that was appended to the operating system and adds both lengths to marks.
func (f *file) mark(marks []store.Mark) ([]store.Mark, error) {
	length, err := f.records.Mark()
	if err != nil {
		return marks, fmt.Errorf("%s: %w", f.name, err)
	}
	indexLength, err := f.lines.Mark()
	if err != nil {
		return marks, fmt.Errorf("%s: %w", f.index, err)
	}
	f.marked = length
	return append(marks, store.Mark{Name: "warc/" + f.name + open, Length: length},
		store.Mark{Name: "warc/" + f.index + open, Length: indexLength}), nil
}

func (f *file) sync() error {
	if f.closed {
		return nil
	}
	return errors.Join(f.records.Sync(), f.lines.Sync())
}

// finalize closes the file, sorts its index and gives both their final names. A crash after any step leaves a state
// from which Open does it again.
func (f *file) finalize() error {
	if err := f.close(); err != nil {
		return err
	}
	unsorted := f.path(f.index + open)
	if err := sortLines(f.disk, unsorted, f.path(f.index), sortBuffer); err != nil {
		return fmt.Errorf("sorting %s: %w", f.index, err)
	}
	if err := f.disk.Rename(f.path(f.name+open), f.path(f.name)); err != nil {
		return err
	}
	return f.disk.Remove(unsorted)
}

// close syncs both logs, because cutting back is not durable by itself, and closes them.
func (f *file) close() error {
	if !f.closed {
		f.closed, f.closeErr = true, errors.Join(f.records.Sync(), f.lines.Sync(), f.records.Close(), f.lines.Close())
	}
	return f.closeErr
}

var extensions = map[string]string{"gzip": ".warc.gz", "zstd": ".warc.zst", "none": ".warc"}

// fileName is NAME-TIMESTAMP-SERIAL-HOST.warc.gz, as Heritrix names its files.
func (c *Config) fileName(serial int) string {
	stamp := strings.Replace(c.Now().UTC().Format("20060102150405.000"), ".", "", 1)
	return fmt.Sprintf("%s-%s-%05d-%s%s", safeName(c.Name), stamp, serial, safeName(c.Hostname), extensions[c.Compression])
}

// safeName leaves only what is harmless in a file's name on every system; ".warc" in it would be taken for the ending.
func safeName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, s)
	s = strings.ReplaceAll(s, ".warc", "_warc")
	if s == "" {
		return "crawl"
	}
	return s[:min(len(s), 80)]
}

var serialPart = regexp.MustCompile(`-\d{17}-(\d{5,9})-.*\.warc`)

// nextSerial is one more than the highest serial in dir.
func nextSerial(disk vfs.FS, dir string) (int, error) {
	names, err := disk.List(dir)
	next := 0
	for _, name := range names {
		if m := serialPart.FindStringSubmatch(name); m != nil {
			n, _ := strconv.Atoi(m[1])
			next = max(next, n+1)
		}
	}
	return next, err
}
