package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"kumo/internal/state/store"
	"kumo/internal/state/store/warc"
)

// Verify reads every record of a day's WARCs to its last byte and checks its digests. It also checks that the index has
// a line for each answer, and a record for each line.
func Verify(ctx context.Context, dir string) (records int, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "warc", "*.warc*"))
	if err != nil {
		return 0, err
	}
	answers := map[location]string{} // URLs of the records that the index must list
	for _, name := range names {
		n, err := verifyFile(ctx, name, answers)
		records += n
		if err != nil {
			return records, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(names) == 0 {
		return 0, nil
	}
	return records, verifyIndex(filepath.Join(dir, "index.cdxj"), answers)
}

// A location is the position of a record.
type location struct {
	file           string
	offset, length int64
}

func verifyFile(ctx context.Context, name string, answers map[location]string) (records int, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	r, err := warc.NewReader(f, info.Size(), name)
	if err != nil {
		return 0, err
	}
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return records, ctx.Err()
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return records, fmt.Errorf("record at byte %d: %w", r.Offset(), err)
		}
		records++
		if kind := rec.Fields["WARC-Type"]; kind == "response" || kind == "revisit" {
			answers[location{filepath.Base(name), rec.Offset, rec.Length}] = rec.Fields["WARC-Target-URI"]
		}
	}
}

// errIndex is the error for an index that does not match its files.
var errIndex = errors.New("the index does not match the WARCs")

func verifyIndex(name string, answers map[location]string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	before := ""
	torn, err := store.EachLine(f, func(text []byte, _ int64) error {
		x, err := warc.ParseIndexLine(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		at, line := location{x.File, x.Offset, x.Length}, string(text)
		if url, there := answers[at]; !there || url != x.URL || line < before {
			return fmt.Errorf("%s: %w: no record for the line of %s", name, errIndex, x.URL)
		}
		delete(answers, at)
		before = line
		return nil
	})
	if err == nil && torn > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	for at, url := range answers {
		return fmt.Errorf("%s: %w: no line for %s, in %s at byte %d", name, errIndex, url, at.file, at.offset)
	}
	return nil
}
