package batch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"kumo/internal/archive/place"
	"kumo/internal/batch/seqfile"
)

// ReadFile iterates over the records of a SequenceFile; each is valid until the next. An error ends the iteration.
func ReadFile(ctx context.Context, p place.Place, name string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		in, err := seqfile.Open(ctx, p, name, 0, -1)
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer in.Close() //nolint:errcheck // it is only read
		for {
			key, value, err := in.Next()
			if errors.Is(err, io.EOF) || !yield(Record{key, value}, err) || err != nil {
				return
			}
		}
	}
}

// EachRecord calls do for each record of some files; each is valid until the next. Errors name the file.
func EachRecord(ctx context.Context, p place.Place, names []string, do func(r Record) error) error {
	for _, name := range names {
		for r, err := range ReadFile(ctx, p, name) {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				err = do(r)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// WriteFile writes a SequenceFile, which appears when it is complete. write receives the function that adds records.
func WriteFile(ctx context.Context, p place.Place, name string, write func(Emit) error) error {
	w, err := p.Create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	out := bufio.NewWriterSize(w, 64<<10)
	seq, err := seqfile.NewWriter(out)
	if err == nil {
		err = write(seq.Append)
	}
	if err == nil {
		err = errors.Join(seq.Close(), out.Flush())
	}
	if err != nil {
		return err
	}
	return w.Close()
}

// ListFiles returns the names of the files in a folder and below it, relative to the storage location, sorted.
func ListFiles(ctx context.Context, p place.Place, dir string) (all []string, err error) {
	err = place.Walk(ctx, p, dir, func(name string, _ place.Info) error {
		all = append(all, name)
		return nil
	})
	return all, err
}

// ReadJSON reads a JSON file. If it cannot be decoded, the error is [ErrDamaged].
func ReadJSON(ctx context.Context, p place.Place, name string, to any) error {
	data, err := place.ReadFile(ctx, p, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("%s: %w: %w", name, ErrDamaged, err)
	}
	return nil
}

// writeJSON writes an indented JSON file.
func writeJSON(ctx context.Context, p place.Place, name string, v any) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return place.WriteFile(ctx, p, name, append(data, '\n'))
}

// EachLine calls do for each line of a file, with its line end; each is valid until the next. Errors name the file.
func EachLine(ctx context.Context, p place.Place, name string, do func(line []byte) error) error {
	src, err := p.Open(ctx, name, 0, -1)
	if err != nil {
		return err
	}
	defer src.Close() // opened for reading only
	for in := bufio.NewReaderSize(src, 64<<10); ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) == 0 {
			return ctx.Err()
		}
		if err == nil || errors.Is(err, io.EOF) { // a truncated line cannot be parsed
			err = ctx.Err()
		}
		if err == nil {
			err = do(line)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

// parseLine decodes a line of JSON.
func parseLine(line []byte, to any) error {
	if err := json.Unmarshal(line, to); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}
