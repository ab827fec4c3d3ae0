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

const open = ".open" // suffix of a file that is still growing

// A file is a WARC file with its index.
type file struct {
	disk      vfs.FS
	dir       string
	name      string // final base name of the WARC file
	index     string // final base name of its index
	records   *vfs.Log
	lines     *vfs.Log // the index in order of arrival
	location  []byte   // buffer for the end of an index line
	marked    int64    // length of records at the last Mark
	committed int64    // length of records at the last journaled Mark
	closed    bool
	closeErr  error // if set, the file never gets its final name
}

// openFile opens the file with the given final name, truncated to the given lengths.
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

// newFile creates the next file with its warcinfo record.
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

// append appends records, and an index line without their location.
func (f *file) append(records, line []byte) (offset int64, err error) {
	offset, err = f.records.Append(records)
	if err != nil {
		return offset, err
	}
	return offset, f.addLine(offset, line)
}

// addLine completes and appends the index line of records at offset. An empty line is not appended.
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

// mark passes all data to the operating system and appends the lengths of both files to marks.
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

// finalize closes the file, sorts its index and gives both their final names. It can be interrupted by a crash at any
// step; Open then repeats it.
func (f *file) finalize() error {
	if err := f.close(); err != nil {
		return err
	}
	unsorted := f.path(f.index + open)
	if err := sortLines(f.disk, unsorted, f.path(f.index), sortBuffer); err != nil {
		return fmt.Errorf("sort %s: %w", f.index, err)
	}
	if err := f.disk.Rename(f.path(f.name+open), f.path(f.name)); err != nil {
		return err
	}
	return f.disk.Remove(unsorted)
}

// close syncs both logs, because a truncation is not durable by itself, and closes them.
func (f *file) close() error {
	if !f.closed {
		f.closed, f.closeErr = true, errors.Join(f.records.Sync(), f.lines.Sync(), f.records.Close(), f.lines.Close())
	}
	return f.closeErr
}

var extensions = map[string]string{"gzip": ".warc.gz", "zstd": ".warc.zst", "none": ".warc"}

// fileName returns NAME-TIMESTAMP-SERIAL-HOST.warc.gz, as in Heritrix.
func (c *Config) fileName(serial int) string {
	stamp := strings.Replace(c.Now().UTC().Format("20060102150405.000"), ".", "", 1)
	return fmt.Sprintf("%s-%s-%05d-%s%s", safeName(c.Name), stamp, serial, safeName(c.Hostname), extensions[c.Compression])
}

// safeName replaces characters that some systems do not allow in file names, and ".warc", which marks the extension.
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

// nextSerial returns the highest serial number in dir plus one.
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
