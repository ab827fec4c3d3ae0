package warc

import (
	"bytes"
	"crypto/sha1"
	"encoding/base32"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"kumo/internal/store/field"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A draft is where one goroutine puts records together: compressed one by one into out, which is then appended to a file.
type draft struct {
	out   bytes.Buffer
	z     compressor
	head  []byte // of the record at work
	block []byte // of a record whose block is made here
	line  []byte // of the index
}

// A compressor makes one member (gzip) or frame (zstd) from Reset to Close.
type compressor interface {
	io.WriteCloser
	Reset(io.Writer)
}

// plain is the compressor that does nothing.
type plain struct{ io.Writer }

func (p *plain) Reset(w io.Writer) { p.Writer = w }
func (p *plain) Close() error      { return nil }

var compressors = map[string]func() compressor{
	"gzip": func() compressor {
		z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails for unknown levels only
		return z
	},
	"zstd": func() compressor {
		z, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true)) // fails for bad options only
		return z
	},
	"none": func() compressor { return &plain{} },
}

// drafts is a pool of them.
type drafts struct{ pool sync.Pool }

func newDrafts(compression string) (*drafts, error) {
	newCompressor, ok := compressors[compression]
	if !ok {
		return nil, fmt.Errorf("warc: unknown compression %q", compression)
	}
	return &drafts{sync.Pool{New: func() any { return &draft{z: newCompressor()} }}}, nil
}

func (p *drafts) get() *draft {
	d := p.pool.Get().(*draft)
	d.out.Reset()
	d.line = d.line[:0]
	return d
}

// put gives d back unless a huge answer has made it huge.
func (p *drafts) put(d *draft) {
	if d.out.Cap()+cap(d.block) <= 4<<20 {
		p.pool.Put(d)
	}
}

// begin starts a record's head.
func (d *draft) begin(kind, id string) {
	d.head = append(d.head[:0], "WARC/1.1\r\nWARC-Type: "...)
	d.head = append(d.head, kind...)
	d.head = append(d.head, "\r\nWARC-Record-ID: <"...)
	d.head = append(d.head, id...)
	d.head = append(d.head, ">\r\n"...)
}

// field adds a field to the head, whatever value holds, and leaves it out when value is empty.
func (d *draft) field(name, value string) {
	if value != "" {
		d.head = append(d.head, name...)
		d.head = append(d.head, ": "...)
		d.head = field.Line(d.head, value)
		d.head = append(d.head, "\r\n"...)
	}
}

// url adds a field whose value is a URL.
func (d *draft) url(name, value string) {
	d.head = append(d.head, name...)
	d.head = append(d.head, ": "...)
	d.head = field.Token(d.head, value)
	d.head = append(d.head, "\r\n"...)
}

// ref adds a field whose value is a record's id.
func (d *draft) ref(name, id string) {
	if id != "" {
		d.field(name, "<"+id+">")
	}
}

// date adds a field with microseconds in UTC, the finest that WARC readers are sure to take.
func (d *draft) date(name string, t time.Time) {
	d.head = append(d.head, name...)
	d.head = append(d.head, ": "...)
	d.head = t.UTC().AppendFormat(d.head, "2006-01-02T15:04:05.000000Z")
	d.head = append(d.head, "\r\n"...)
}

func (d *draft) digest(name string, sum [sha1.Size]byte) {
	d.head = append(d.head, name...)
	d.head = append(d.head, ": "...)
	d.head = appendDigest(d.head, sum)
	d.head = append(d.head, "\r\n"...)
}

var recordEnd = []byte("\r\n\r\n")

// end completes the record with its block, compresses it to out and returns its length there.
func (d *draft) end(contentType string, block []byte) (length int64, err error) {
	d.digest("WARC-Block-Digest", sha1.Sum(block))
	d.field("Content-Type", contentType)
	d.head = append(d.head, "Content-Length: "...)
	d.head = strconv.AppendInt(d.head, int64(len(block)), 10)
	d.head = append(d.head, "\r\n\r\n"...)

	start := d.out.Len()
	d.z.Reset(&d.out)
	for _, part := range [...][]byte{d.head, block, recordEnd} {
		if _, err := d.z.Write(part); err != nil {
			return 0, err
		}
	}
	err = d.z.Close()
	return int64(d.out.Len() - start), err
}

func appendDigest(dst []byte, sum [sha1.Size]byte) []byte {
	return base32.StdEncoding.AppendEncode(append(dst, "sha1:"...), sum[:])
}
