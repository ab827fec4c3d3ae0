package vfs

import (
	"bufio"
	"sync"
)

// A Log is a file of whole entries: it buffers them, tells at which length it held whole entries only, and makes them
// durable. Its methods may be called by many goroutines at once.
type Log struct {
	mu     sync.Mutex // guards buf and length; not held while syncing
	file   File
	buf    *bufio.Writer
	length int64
}

// OpenLog opens the log at name, cut back to length first. A log shorter than length has lost entries, which is an
// error of kind fs.ErrInvalid.
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

// Append adds one entry and returns the offset at which it begins.
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

// Mark hands all entries to the operating system and returns the log's length.
func (l *Log) Mark() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.length, l.buf.Flush()
}

// Len is the log's length, what is still buffered included.
func (l *Log) Len() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.length
}

// Sync makes durable what was there at the last Mark.
func (l *Log) Sync() error { return l.file.Sync() }

// Close closes the file. What was appended after the last Mark is not kept.
func (l *Log) Close() error { return l.file.Close() }
