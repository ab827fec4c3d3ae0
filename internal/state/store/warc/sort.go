package warc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"kumo/internal/base/vfs"
)

const (
	temporary  = ".tmp"  // suffix of files that are useless after a crash
	sortBuffer = 4 << 20 // bytes of lines that are sorted in memory
	maxFanIn   = 128     // files merged at once
)

// sortLines sorts the lines of the file from bytewise into the file to. Files larger than room bytes are sorted in
// runs, which are then merged.
func sortLines(disk vfs.FS, from, to string, room int) error {
	in, err := disk.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	r := bufio.NewReaderSize(in, 64<<10)
	var runs []string
	var text []byte
	var lines [][]byte
	for {
		text, err = readLines(r, text[:0], room)
		if err != nil {
			return err
		}
		if len(text) == 0 && len(runs) > 0 {
			break
		}
		run := fmt.Sprintf("%s.run%d%s", to, len(runs), temporary)
		lines = slices.AppendSeq(lines[:0], bytes.Lines(text))
		if err := writeSorted(disk, run, lines); err != nil {
			return err
		}
		runs = append(runs, run)
		if len(text) < room {
			break
		}
	}
	if len(runs) == 1 {
		return disk.Rename(runs[0], to)
	}
	return errors.Join(mergeLines(disk, runs, to, maxFanIn), removeAll(disk, runs))
}

// readLines appends whole lines to text until it has at least room bytes, or up to the end of the file.
func readLines(r *bufio.Reader, text []byte, room int) ([]byte, error) {
	for len(text) < room {
		part, err := r.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case errors.Is(err, io.EOF):
			return text, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
	rest, err := r.ReadBytes('\n') // a line longer than the reader's buffer, or one more line
	if err == io.EOF {
		err = nil
	}
	return append(text, rest...), err
}

func writeSorted(disk vfs.FS, name string, lines [][]byte) error {
	slices.SortFunc(lines, bytes.Compare)
	return writeFile(disk, name, func(w *bufio.Writer) error {
		for _, line := range lines {
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeFile writes a durable file with the output of fill. An existing file is replaced.
func writeFile(disk vfs.FS, name string, fill func(*bufio.Writer) error) error {
	if err := disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := disk.Append(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 64<<10)
	if err = fill(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func removeAll(disk vfs.FS, names []string) error {
	var failed error
	for _, name := range names {
		failed = errors.Join(failed, disk.Remove(name))
	}
	return failed
}
