package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
)

// FindMark returns the marked length of a file, and whether marks contain the file.
func FindMark(marks []Mark, name string) (length int64, ok bool) {
	for _, m := range marks {
		if m.Name == name {
			return m.Length, true
		}
	}
	return 0, false
}

// Logs are the files of a store whose file names never change. Stores embed Logs and add Put and PutSkip.
type Logs struct {
	names []string
	logs  []*vfs.Log
}

// OpenLogs opens the files called names in the crawl's folder dir. Each is truncated to its mark, or to nothing if it
// has none.
func OpenLogs(disk vfs.FS, dir string, marks []Mark, names ...string) (*Logs, error) {
	if err := disk.MkdirAll(dir); err != nil {
		return nil, err
	}
	l := &Logs{}
	for _, name := range names {
		length, _ := FindMark(marks, name)
		log, err := vfs.OpenLog(disk, filepath.Join(dir, name), length)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), l.Close())
		}
		l.names = append(l.names, name)
		l.logs = append(l.logs, log)
	}
	return l, nil
}

// Append adds a line to the i-th file.
func (l *Logs) Append(i int, line []byte) error {
	if _, err := l.logs[i].Append(line); err != nil {
		return fmt.Errorf("write %s: %w", l.names[i], err)
	}
	return nil
}

// Mark implements Store.
func (l *Logs) Mark() ([]Mark, error) {
	marks := make([]Mark, 0, len(l.logs))
	for i, log := range l.logs {
		length, err := log.Mark()
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", l.names[i], err)
		}
		marks = append(marks, Mark{Name: l.names[i], Length: length})
	}
	return marks, nil
}

// Sync implements Store.
func (l *Logs) Sync() error {
	for i, log := range l.logs {
		if err := log.Sync(); err != nil {
			return fmt.Errorf("sync %s: %w", l.names[i], err)
		}
	}
	return nil
}

// Finalize implements Store. It does nothing, because the files have their final names.
func (l *Logs) Finalize() error { return nil }

// Close implements Store.
func (l *Logs) Close() error {
	var failed error
	for _, log := range l.logs {
		failed = errors.Join(failed, log.Close())
	}
	return failed
}

// Lines is a store with one file of lines.
type Lines struct {
	*Logs
	room  sync.Pool // of *[]byte
	lines func(b []byte, rec *page.Record) []byte
}

// OpenLines opens the file called name in the crawl's folder dir, and truncates it to its mark. lines appends the lines
// of a record to b; there may be none.
func OpenLines(disk vfs.FS, dir string, marks []Mark, name string,
	lines func(b []byte, rec *page.Record) []byte) (*Lines, error) {
	logs, err := OpenLogs(disk, dir, marks, name)
	if err != nil {
		return nil, err
	}
	return &Lines{Logs: logs, room: sync.Pool{New: func() any { return new([]byte) }}, lines: lines}, nil
}

// Put writes the lines of a record.
func (l *Lines) Put(rec *page.Record) error {
	b := l.room.Get().(*[]byte)
	defer l.room.Put(b)
	if *b = l.lines((*b)[:0], rec); len(*b) == 0 {
		return nil
	}
	return l.Append(0, *b)
}

// PutSkip does nothing: the file contains records only.
func (l *Lines) PutSkip(*page.Skip) error { return nil }
