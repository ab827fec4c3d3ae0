package warc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"kumo/internal/base/extsort"
	"kumo/internal/base/vfs"
)

// mergeLines merges files with sorted lines into a file at to, which is created atomically. At most fanIn files (at
// least 2) are open at once; if there are more, groups are merged first.
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

// mergeGroup merges the lines of all files into a new file at to.
func mergeGroup(disk vfs.FS, from []string, to string) (err error) {
	var all []extsort.Records
	for _, name := range from {
		f, err := disk.Open(name)
		if err != nil {
			return err
		}
		defer f.Close() // only read, so the error does not matter
		all = append(all, &lineReader{r: bufio.NewReaderSize(f, 32<<10)})
	}
	return writeFile(disk, to, func(w *bufio.Writer) error {
		return extsort.MergeSorted(all).Each(context.Background(), func(line, _ []byte) error {
			_, err := w.Write(line)
			return err
		})
	})
}

// A lineReader reads the lines of a file, with their ends, as sort keys.
type lineReader struct {
	r    *bufio.Reader
	line []byte
}

func (l *lineReader) Next() (line, _ []byte, err error) {
	l.line = l.line[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.line = append(l.line, part...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(l.line) > 0:
			return l.line, nil, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, nil, err
		}
	}
}
