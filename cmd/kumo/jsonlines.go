package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"kumo/internal/engine/check"
	"kumo/internal/view/text"
)

const maxLine = 64 << 20 // bytes of a line

// A lineError answers a line that cannot be read.
type lineError struct {
	Error string `json:"error"`
	Line  int    `json:"line"` // its number, from 1
}

// readLines answers each line. What it lacks is as in defaults. A line that cannot be read is answered with an error,
// and is never the end; an empty line has no answer.
func readLines[In, Out any](r io.Reader, w io.Writer, defaults In, read func(In) (Out, error)) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, end := nextLine(lines)
		if end != nil && !errors.Is(end, io.EOF) && !errors.Is(end, errLong) {
			return end
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := text.JSON(w, answerTo(line, end, n, defaults, read)); err != nil {
				return err
			}
		}
		if errors.Is(end, io.EOF) {
			return nil
		}
	}
}

func jsonLines[T any](w io.Writer, all []T) error {
	for i := range all {
		if err := text.JSON(w, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

// answerTo is the answer to a line, or an error in its place.
func answerTo[In, Out any](line []byte, end error, n int, in In, read func(In) (Out, error)) any {
	err := end
	if !errors.Is(end, errLong) {
		err = check.Unmarshal(line, &in)
	}
	if err != nil {
		return lineError{err.Error(), n}
	}
	out, err := read(in)
	if err != nil {
		return lineError{err.Error(), n}
	}
	return out
}

var errLong = fmt.Errorf("longer than %d MiB", maxLine>>20)

// nextLine reads a line. Of one that is too long it gives the beginning, with errLong.
func nextLine(r *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && err == nil:
			return line, errLong
		default:
			return line, err
		}
	}
}
