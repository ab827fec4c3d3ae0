package vfs

import (
	"bufio"
	"sync"
)

// A Log is an append-only file of entries. It buffers entries, reports lengths that contain whole entries only, and
// makes them durable. It is safe for concurrent use.
type Log struct {
	mu     sync.Mutex // guards buf and length; not held while syncing
	file   File
	buf    *bufio.Writer
	length int64
}

// OpenLog opens a log and truncates it to length. A log shorter than length has lost entries, which is an error of kind
// fs.ErrInvalid.
func OpenLog(disk FS, name string, length int64) (*Log, error) {
	if err := TruncateTo(disk, name, length); err != nil {
		return nil, err
	}
	f, err := disk.Append(name)
	if err != nil {
		return nil, err
	}
	return &Log{file: f, buf: bufio.NewWriterSize(f, 64<<10), length: length}, nil
}

// Append adds an entry and returns its offset.
func (l *Log) Append(entry ...[]byte) (offset int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	offset = l.length
	for _, part := range entry {
		n, err := l.buf.Write(part)
		l.length += int64(n)
		if err != nil {
			return offset, err
		}
	}
	return offset, nil
}

// Mark passes all entries to the operating system and returns the length of the log.
func (l *Log) Mark() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.length, l.buf.Flush()
}

// Len returns the length of the log, including buffered entries.
func (l *Log) Len() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.length
}

// Sync makes the entries before the last Mark durable.
func (l *Log) Sync() error { return l.file.Sync() }

// Close closes the file. Entries after the last Mark are lost.
func (l *Log) Close() error { return l.file.Close() }
