package run

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"kumo/internal/base/vfs"
)

// Options configures how a run is written.
type Options struct {
	Compress bool              // a smaller file, slower to write and read
	Pace     func(n int) error // called before n bytes are written; an error aborts; may be nil
}

// A Writer writes a run.
type Writer struct {
	file    vfs.File
	out     *bufio.Writer
	pace    func(n int) error
	coder   coder
	coded   []byte // the encoded block
	at      int64  // position of the next byte
	block   block
	sep     []byte // separator of the block
	last    []byte // the last key
	count   uint64
	index   index
	sharder sharder
	filters []byte // first key, position and length of each
	shards  uint64
}

// Create creates the run at name, which must not exist.
func Create(disk vfs.FS, name string, opt Options) (*Writer, error) {
	f, err := disk.Append(name)
	if err != nil {
		return nil, err
	}
	w := &Writer{file: f, out: bufio.NewWriterSize(f, 256<<10), pace: opt.Pace}
	if w.pace == nil {
		w.pace = func(int) error { return nil }
	}
	if w.coder, err = newCoder(opt.Compress); err == nil {
		err = w.write([]byte(magic))
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Writer) write(b []byte) error {
	if err := w.pace(len(b)); err != nil {
		return err
	}
	n, err := w.out.Write(b)
	w.at += int64(n)
	return err
}

// Add adds a key, which must be greater than all earlier ones.
func (w *Writer) Add(key, value []byte) error {
	shared := common(w.last, key)
	if w.count > 0 && (shared == len(key) || shared < len(w.last) && key[shared] < w.last[shared]) {
		return fmt.Errorf("add %q after %q: %w", key, w.last, ErrOrder)
	}
	if w.block.len() >= blockSize {
		if err := w.endBlock(); err != nil {
			return err
		}
	}
	if w.block.len() == 0 {
		w.sep = append(w.sep[:0], separator(w.last, key)...)
		shared = 0
	}
	w.block.add(shared, key[shared:], value)
	w.last = append(w.last[:0], key...)
	w.sharder.add(key)
	w.count++
	return nil
}

// endBlock writes the block, and the filter if it is full: the keys of a block are all in one filter.
func (w *Writer) endBlock() error {
	if w.block.len() == 0 {
		return nil
	}
	runtime.Gosched()
	w.coded = seal(w.coder.encode(w.coded[:0], &w.block))
	w.block.reset()
	w.index.add(w.sep, w.at, len(w.coded))
	if err := w.write(w.coded); err != nil {
		return err
	}
	if w.sharder.full() {
		return w.endShard()
	}
	return nil
}

func (w *Writer) endShard() error {
	if len(w.sharder.hashes) == 0 {
		return nil
	}
	b, err := w.sharder.build()
	if err != nil {
		return err
	}
	w.filters = appendBytes(w.filters, w.sharder.first)
	w.filters = binary.AppendUvarint(w.filters, uint64(w.at))
	w.filters = binary.AppendUvarint(w.filters, uint64(len(b)))
	w.shards++
	return w.write(b)
}

// Count returns the number of keys added.
func (w *Writer) Count() uint64 { return w.count }

// Finish writes index and footer, makes the run durable, and closes it.
func (w *Writer) Finish() error {
	if err := errors.Join(w.endBlock(), w.endShard()); err != nil {
		return err
	}
	at := w.at
	b := binary.AppendUvarint(w.index.append(nil), w.shards)
	b = seal(append(b, w.filters...))
	foot := binary.LittleEndian.AppendUint64(nil, uint64(at))
	foot = binary.LittleEndian.AppendUint64(foot, uint64(len(b)))
	foot = binary.LittleEndian.AppendUint64(foot, w.count)
	foot = append(foot, make([]byte, footerLen-4-len(foot))...) // reserved for later versions
	if err := errors.Join(w.write(b), w.write(seal(foot)), w.out.Flush(), w.file.Sync()); err != nil {
		return err
	}
	return w.Close()
}

// Close closes the file. Without Finish, it is not a valid run.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	return f.Close()
}
