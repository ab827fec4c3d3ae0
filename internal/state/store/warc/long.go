package warc

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
)

// A long record is never whole in memory: its block is read from the disk, or from the answer, piece by piece, once for
// its digest and once to be compressed into a temporary file, from which it is appended to the WARC.

const (
	maxShort = 512 << 10 // bytes of a block that is put together in memory
	copySize = 256 << 10 // bytes that are read at once
)

// rawFrom is what an answer has from a place on.
func rawFrom(res *page.Response, from int64) *io.SectionReader {
	var src io.ReaderAt = bytes.NewReader(res.Raw)
	if res.Spooled != nil {
		src = res.Spooled.Raw
	}
	return io.NewSectionReader(src, from, res.RawLen()-from)
}

// headOf is the head of an answer.
func (d *draft) headOf(res *page.Response) []byte {
	head := headBytes(res)
	if len(head) < res.HeadLen {
		d.fail(io.ErrUnexpectedEOF)
	}
	return head
}

func headBytes(res *page.Response) []byte {
	if res.Spooled == nil {
		return res.Raw[:res.HeadLen]
	}
	head := make([]byte, res.HeadLen)
	n, _ := res.Spooled.Raw.ReadAt(head, 0) // what is missing is seen
	return head[:n]
}

// payloadIsBody reports whether an answer's payload is its body as it came.
func payloadIsBody(res *page.Response) bool {
	return res.PayloadLen() == res.RawLen()-int64(res.HeadLen)
}

// fail keeps the first error of what is on the disk.
func (d *draft) fail(err error) {
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("put a long record together: %w", err)
	}
}

// endLong is end for a long block.
func (d *draft) endLong(contentType string, block *io.SectionReader) (length int64) {
	d.flush()
	sum := sha1.New()
	d.copy(sum, block)
	d.endHead(contentType, [sha1.Size]byte(sum.Sum(nil)), block.Size())

	start := d.spool.Len()
	out := bufio.NewWriterSize(d.spool, 64<<10)
	z := d.compressor(out)
	_, err := z.Write(d.head)
	d.fail(err)
	d.copy(z, block)
	_, err = z.Write(recordEnd)
	d.fail(errors.Join(err, z.Close(), out.Flush()))
	return d.spool.Len() - start
}

// compressor makes a member of what is written to it.
func (d *draft) compressor(out io.Writer) io.WriteCloser {
	switch d.compression {
	case "gzip":
		z, _ := gzip.NewWriterLevel(out, flate.BestSpeed) // fails for unknown levels only
		return z
	case "zstd":
		z, _ := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20),
			zstd.WithEncoderCRC(false),
			zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(1)) // fails for bad options only
		return z
	}
	return plainWriter{out}
}

type plainWriter struct{ io.Writer }

func (plainWriter) Close() error { return nil }

// copy writes a block, piece by piece. A piece is the draft's: at most one block is copied at a time.
func (d *draft) copy(to io.Writer, block *io.SectionReader) {
	if d.copyBuf == nil {
		d.copyBuf = make([]byte, copySize)
	}
	for off := int64(0); off < block.Size() && d.err == nil; {
		part := d.copyBuf[:min(copySize, block.Size()-off)]
		if n, err := block.ReadAt(part, off); n < len(part) {
			d.fail(err)
			return
		}
		_, err := to.Write(part)
		d.fail(err)
		off += int64(len(part))
	}
}

// flush puts what is in memory behind the long records.
func (d *draft) flush() {
	if d.spool == nil {
		d.spool = d.scratch.New()
	}
	_, err := d.spool.Write(d.out)
	d.fail(err)
	d.out = d.out[:0]
}

// longMetadata is metadata for a page with so many links that their text is long.
func (d *draft) longMetadata(rec *page.Record) {
	text := d.scratch.New()
	defer text.Free()
	out := bufio.NewWriterSize(text, 64<<10)
	d.block = appendDescription(d.block[:0], rec)
	_, err := out.Write(d.block)
	for i := range rec.Page.Links {
		d.block = appendOutlink(d.block[:0], &rec.Page.Links[i])
		_, e := out.Write(d.block)
		err = errors.Join(err, e)
	}
	d.fail(errors.Join(err, out.Flush()))
	d.endLong(fieldsType, io.NewSectionReader(text, 0, text.Len()))
}

// linksAreLong reports whether a page's links are a long block.
func linksAreLong(rec *page.Record) bool {
	if rec.Page == nil {
		return false
	}
	size := 0
	for i := range rec.Page.Links {
		size += len(rec.Page.Links[i].URL) + len("outlink:   redirect\r\n")
	}
	return size > maxShort
}

// appendSpooled adds records that lie on the disk, which begin where the file ends.
func (f *file) appendSpooled(far *vfs.Spool, line, room []byte) (offset int64, err error) {
	offset = f.records.Len()
	for at := int64(0); at < far.Len(); {
		part := room[:min(int64(len(room)), far.Len()-at)]
		if n, err := far.ReadAt(part, at); n < len(part) {
			return offset, err
		}
		if _, err := f.records.Append(part); err != nil {
			return offset, err
		}
		at += int64(len(part))
	}
	return offset, f.addLine(offset, line)
}
