package warc

import (
	"bufio"
	"bytes"
	"container/heap"
	"errors"
	"fmt"
	"io"

	"kumo/internal/base/vfs"
)

// mergeLines merges files of sorted lines into one at to, which appears whole or not at all. At most fanIn (at least 2)
// are open at once: more are merged in groups first.
func mergeLines(disk vfs.FS, from []string, to string, fanIn int) error {
	var made []string
	for n := 0; len(from) > fanIn; n++ {
		group := fmt.Sprintf("%s.group%d%s", to, n, temporary)
		if err := mergeGroup(disk, from[:fanIn], group); err != nil {
			return err
		}
		from = append(from[fanIn:len(from):len(from)], group)
		made = append(made, group)
	}
	if err := mergeGroup(disk, from, to+temporary); err != nil {
		return err
	}
	return errors.Join(disk.Rename(to+temporary, to), removeAll(disk, made))
}

// mergeGroup streams the lines of all files, smallest first, into a new file at to.
func mergeGroup(disk vfs.FS, from []string, to string) (err error) {
	var readers lineHeap
	defer func() {
		for _, r := range readers {
			err = errors.Join(err, r.file.Close())
		}
	}()
	for _, name := range from {
		f, err := disk.Open(name)
		if err != nil {
			return err
		}
		readers = append(readers, &lineReader{file: f, r: bufio.NewReaderSize(f, 32<<10)})
	}
	return writeFile(disk, to, func(w *bufio.Writer) error { return merge(w, readers) })
}

func merge(w *bufio.Writer, all []*lineReader) error {
	var open lineHeap
	for _, r := range all {
		more, err := r.next()
		if err != nil {
			return err
		}
		if more {
			open = append(open, r)
		}
	}
	heap.Init(&open)
	for len(open) > 0 {
		if _, err := w.Write(open[0].line); err != nil {
			return err
		}
		more, err := open[0].next()
		switch {
		case err != nil:
			return err
		case more:
			heap.Fix(&open, 0)
		default:
			heap.Pop(&open)
		}
	}
	return nil
}

// A lineReader is a file of sorted lines at one of them.
type lineReader struct {
	file io.Closer
	r    *bufio.Reader
	line []byte
}

// next goes to the next line and reports whether there is one.
func (l *lineReader) next() (bool, error) {
	l.line = l.line[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.line = append(l.line, part...)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, io.EOF):
			return len(l.line) > 0, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return false, err
		}
	}
}

// A lineHeap has the reader with the smallest line on top.
type lineHeap []*lineReader

func (h lineHeap) Len() int           { return len(h) }
func (h lineHeap) Less(i, j int) bool { return bytes.Compare(h[i].line, h[j].line) < 0 }
func (h lineHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *lineHeap) Push(x any)        { *h = append(*h, x.(*lineReader)) }
func (h *lineHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
