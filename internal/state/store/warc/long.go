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

// A long record is never completely in memory. Its block is read in pieces, from disk or from the response, twice: to
// compute its digest, and to compress it into a spool, whose content is then appended to the WARC file.

const (
	maxShort = 512 << 10 // maximum size of a block built in memory, in bytes
	copySize = 256 << 10 // bytes read at once
)

// rawFrom returns a reader of the raw response from an offset.
func rawFrom(res *page.Response, from int64) *io.SectionReader {
	var src io.ReaderAt = bytes.NewReader(res.Raw)
	if res.Spooled != nil {
		src = res.Spooled.Raw
	}
	return io.NewSectionReader(src, from, res.RawLen()-from)
}

// headOf returns the head of a response.
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
	n, _ := res.Spooled.Raw.ReadAt(head, 0) // the caller checks the length
	return head[:n]
}

// payloadIsBody reports whether the payload is identical to the raw body.
func payloadIsBody(res *page.Response) bool {
	return res.PayloadLen() == res.RawLen()-int64(res.HeadLen)
}

// fail records the first error of writing a long record.
func (d *draft) fail(err error) {
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("write a long record: %w", err)
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

// compressor returns a writer that compresses its input to a member of the file.
func (d *draft) compressor(out io.Writer) io.WriteCloser {
	switch d.compression {
	case "gzip":
		z, _ := gzip.NewWriterLevel(out, flate.BestSpeed) // fails only for unknown levels
		return z
	case "zstd":
		z, _ := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20),
			zstd.WithEncoderCRC(false),
			zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(1)) // fails only for invalid options
		return z
	}
	return plainWriter{out}
}

type plainWriter struct{ io.Writer }

func (plainWriter) Close() error { return nil }

// copy copies a block in pieces. It uses d.copyBuf.
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

// flush appends out to the spool.
func (d *draft) flush() {
	if d.spool == nil {
		d.spool = d.scratch.New()
	}
	_, err := d.spool.Write(d.out)
	d.fail(err)
	d.out = d.out[:0]
}

// longMetadata writes the metadata record of a page whose links are too long for memory.
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

// linksAreLong reports whether the text of a page's links is longer than maxShort.
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

// appendSpooled appends records from a spool to the file, and their index line.
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
