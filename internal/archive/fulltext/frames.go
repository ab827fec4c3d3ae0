package fulltext

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"kumo/internal/base/vfs"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// A table is an array of fixed-size records in a file, with a checksum after every [tableChunk] records.
type table struct {
	At int64 `json:"at"`
	N  int   `json:"n"`
}

const tableChunk = 1024

// writeTable writes concatenated records.
func (w *fileWriter) writeTable(records []byte, size int) (table, error) {
	t := table{w.at, len(records) / size}
	for len(records) > 0 {
		n := min(len(records), tableChunk*size)
		if err := w.write(binary.LittleEndian.AppendUint32(records[:n:n], sum(records[:n]))); err != nil {
			return t, err
		}
		records = records[n:]
	}
	return t, nil
}

// A tableReader reads records, one chunk at a time.
type tableReader struct {
	src   io.ReaderAt
	t     table
	size  int
	chunk int // chunk in data; -1: none
	data  []byte
}

func (t table) reader(src io.ReaderAt, size int) *tableReader {
	return &tableReader{src: src, t: t, size: size, chunk: -1}
}

// get returns a record, which is valid until the next call.
func (r *tableReader) get(i int) ([]byte, error) {
	if i < 0 || i >= r.t.N {
		return nil, damagedf("record %d of %d does not exist", i, r.t.N)
	}
	c := i / tableChunk
	if c != r.chunk {
		n := min(r.t.N-c*tableChunk, tableChunk) * r.size
		if cap(r.data) < n+4 {
			r.data = make([]byte, n+4)
		}
		r.data, r.chunk = r.data[:n+4], -1
		if err := readAt(r.src, r.data, r.t.At+int64(c)*int64(tableChunk*r.size+4)); err != nil {
			return nil, err
		}
		if sum(r.data[:n]) != binary.LittleEndian.Uint32(r.data[n:]) {
			return nil, damagedf("wrong checksum of a table")
		}
		r.data, r.chunk = r.data[:n], c
	}
	at := (i - c*tableChunk) * r.size
	return r.data[at : at+r.size], nil
}

// readAt fills b. A file that is too short is damaged.
func readAt(src io.ReaderAt, b []byte, at int64) error {
	if n, err := src.ReadAt(b, at); n < len(b) {
		if err == io.EOF {
			return damagedf("a file is too short")
		}
		return err
	}
	return nil
}

// A fileWriter writes a new file, and counts its bytes.
type fileWriter struct {
	disk vfs.FS
	name string
	file vfs.File
	buf  []byte
	at   int64
}

const writeBuffer = 256 << 10

func create(disk vfs.FS, name string) (*fileWriter, error) {
	if err := vfs.TruncateTo(disk, name, 0); err != nil { // left by a process that ended
		return nil, err
	}
	f, err := disk.Append(name)
	if err != nil {
		return nil, err
	}
	return &fileWriter{disk: disk, name: name, file: f}, nil
}

func (w *fileWriter) write(b []byte) error {
	w.at += int64(len(b))
	w.buf = append(w.buf, b...)
	if len(w.buf) < writeBuffer {
		return nil
	}
	return w.flush()
}

func (w *fileWriter) flush() error {
	_, err := w.file.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// finish makes the file durable, and closes it.
func (w *fileWriter) finish() error {
	err := w.flush()
	if err == nil {
		err = w.file.Sync()
	}
	if closed := w.file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", w.name, err)
	}
	return nil
}

// drop removes the file.
func (w *fileWriter) drop() {
	_ = w.file.Close()
	_ = w.disk.Remove(w.name) // otherwise the next Open removes it
}
