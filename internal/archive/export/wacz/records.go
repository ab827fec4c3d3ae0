package wacz

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"kumo/internal/archive/export/captures"
	"kumo/internal/base/extsort"
	"kumo/internal/state/store/warc"
)

const sortMemory = 32 << 20

// records copies the records, and writes their new index.
func (e *Exporter) records(ctx context.Context) (err error) {
	temp, err := os.MkdirTemp(e.cfg.Temp, "kumo-wacz-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	// Index lines: before is sorted by the records' old locations, after by key with the new locations.
	before := extsort.New(extsort.Config{Dir: filepath.Join(temp, "before"), Memory: sortMemory})
	defer func() { err = errors.Join(err, before.Close()) }()
	after := extsort.New(extsort.Config{Dir: filepath.Join(temp, "after"), Memory: sortMemory})
	defer func() { err = errors.Join(err, after.Close()) }()
	err = e.archive.EachEntry(ctx, func(x *warc.IndexLine, line []byte) error {
		return before.Add(0, placeKey(x.File, x.Offset), line)
	})
	if err != nil {
		return err
	}
	sorted, err := before.Sorted(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sorted.Close()) }()
	entries := &entries{src: sorted}
	if err := entries.next(); err != nil {
		return err
	}
	names, err := e.archive.WARCs()
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		c := copier{e: e, from: name, to: gzipName(name), entries: entries, after: after}
		if err := c.file(ctx); err != nil {
			return fmt.Errorf("warc/%s: %w", name, err)
		}
	}
	return e.index(ctx, after)
}

// placeKey returns a sorter key that orders locations.
func placeKey(file string, offset int64) []byte { return fmt.Appendf(nil, "%s\x00%020d", file, offset) }

// entries reads index lines in the order of locations.
type entries struct {
	src *extsort.Merge
	key string // "" after the last
	x   warc.IndexLine
}

func (s *entries) next() error {
	key, line, err := s.src.Next()
	if errors.Is(err, io.EOF) {
		s.key = ""
		return nil
	}
	if err != nil {
		return err
	}
	s.key = string(key)
	s.x, err = warc.ParseIndexLine(line)
	return err
}

// A copier copies the records of a WARC file.
type copier struct {
	e        *Exporter
	from, to string
	entries  *entries
	after    *extsort.Sorter

	out *entry
	zw  *gzip.Writer  // for records that are not compressed by gzip
	zr  *zstd.Decoder // for records that are compressed by zstd
	src io.ReaderAt
}

func (c *copier) file(ctx context.Context) (err error) {
	src, size, err := c.e.archive.OpenWARC(c.from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	c.src = src
	if !strings.HasSuffix(c.from, ".gz") {
		if c.zr, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)); err != nil {
			return err
		}
		defer c.zr.Close()
		c.zw = gzip.NewWriter(nil)
	}
	in, err := warc.NewReader(src, size, c.from)
	if err != nil {
		return err
	}
	if c.e.archive.IsFiltered() {
		return c.copySelected(ctx, in)
	}
	return c.copyAll(ctx, in)
}

// copyAll copies all readable records.
func (c *copier) copyAll(ctx context.Context, in *warc.Reader) error {
	for ctx.Err() == nil {
		at := in.Offset()
		rec, err := in.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, warc.ErrTorn) {
			return c.end(nil)
		}
		if err != nil {
			c.recordUnreadable(at, err)
			in.Skip()
			continue
		}
		if err := c.copy(rec); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// copySelected copies the records that the index lists.
func (c *copier) copySelected(ctx context.Context, in *warc.Reader) error {
	for ctx.Err() == nil {
		if file, _, _ := strings.Cut(c.entries.key, "\x00"); file != c.from {
			return c.end(nil)
		}
		at := c.entries.x.Offset
		in.SeekTo(at)
		rec, err := in.Next()
		if err != nil {
			c.recordUnreadable(at, err)
			err = c.advanceIndex(at, nil)
		} else {
			err = c.copy(rec)
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// end skips the index lines of missing records, and lists the file.
func (c *copier) end(err error) error {
	if err == nil {
		err = c.advanceIndex(1<<62, nil)
	}
	if err == nil && c.out != nil {
		c.out.end()
	}
	return err
}

// recordUnreadable counts a record that cannot be read.
func (c *copier) recordUnreadable(at int64, err error) {
	c.e.report.Unreadable++
	c.e.report.AddNote((&captures.RecordError{Location: captures.Location{File: c.from, Offset: at}, Err: err}).Error())
}

// copy copies a record, and adds its new location to the index.
func (c *copier) copy(rec *warc.Record) (err error) {
	if c.out == nil {
		if c.out, err = c.e.create("archive/"+c.to, zip.Store); err != nil {
			return err
		}
	}
	at := c.out.n
	member := io.NewSectionReader(c.src, rec.Offset, rec.Length)
	if c.zr == nil {
		_, err = io.Copy(c.out, member)
	} else if err = c.zr.Reset(member); err == nil {
		c.zw.Reset(c.out)
		_, err = io.Copy(c.zw, c.zr)
		err = errors.Join(err, c.zw.Close())
	}
	if err != nil {
		return err
	}
	return c.advanceIndex(rec.Offset, func(x *warc.IndexLine) { x.File, x.Offset, x.Length = c.to, at, c.out.n-at })
}

// advanceIndex passes the index lines of the record at an offset to moved, adds them to the new index, and skips
// earlier lines.
func (c *copier) advanceIndex(at int64, moved func(*warc.IndexLine)) error {
	for c.entries.key != "" {
		file, _, _ := strings.Cut(c.entries.key, "\x00")
		if file > c.from || file == c.from && c.entries.x.Offset > at {
			return nil
		}
		if file == c.from && c.entries.x.Offset == at && moved != nil {
			moved(&c.entries.x)
			if err := c.after.Add(0, bytes.TrimSuffix(warc.AppendIndexLine(nil, &c.entries.x), []byte("\n")), nil); err != nil {
				return err
			}
		}
		if err := c.entries.next(); err != nil {
			return err
		}
	}
	return nil
}

const blockLines = 3000 // index lines per compressed block

// index writes the index in compressed blocks, and the positions of the blocks.
func (e *Exporter) index(ctx context.Context, lines *extsort.Sorter) error {
	const name = "index.cdx.gz"
	out, err := e.create("indexes/"+name, zip.Store)
	if err != nil {
		return err
	}
	var block, packed bytes.Buffer
	idx := bytes.NewBufferString(`!meta 0 {"format": "cdxj-gzip-1.0", "filename": "` + name + `"}` + "\n")
	zw := gzip.NewWriter(nil)
	first, n := "", 0
	flush := func() error {
		packed.Reset()
		zw.Reset(&packed)
		_, err := zw.Write(block.Bytes())
		if err = errors.Join(err, zw.Close()); err != nil {
			return err
		}
		sum := sha256.Sum256(packed.Bytes())
		fmt.Fprintf(idx, `%s {"offset": %d, "length": %d, "digest": "sha256:%s", "filename": "%s"}`+"\n", first, out.n,
			packed.Len(), hex.EncodeToString(sum[:]), name)
		block.Reset()
		n = 0
		_, err = out.Write(packed.Bytes())
		return err
	}
	err = lines.Each(ctx, func(line, _ []byte) error {
		if n == 0 {
			key, rest, _ := strings.Cut(string(line), " ")
			stamp, _, _ := strings.Cut(rest, " ")
			first = key + " " + stamp
		}
		block.Write(line)
		block.WriteByte('\n')
		if n++; n < blockLines {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	if n > 0 || out.n == 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	out.end()
	x, err := e.create("indexes/index.idx", zip.Deflate)
	if err != nil {
		return err
	}
	if _, err := x.Write(idx.Bytes()); err != nil {
		return err
	}
	x.end()
	return nil
}
