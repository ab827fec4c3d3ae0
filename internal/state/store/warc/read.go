package warc

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"kumo/internal/base/vfs"
)

// A Record is one record of a WARC file as it lies there. What it holds is valid until the next.
type Record struct {
	Offset, Length int64             // of its member in the file
	Fields         map[string]string // of its head; of a field that comes twice, the last
	Block          []byte
}

// ID is the record's id without its brackets.
func (r *Record) ID() string { return unbracket(r.Fields["WARC-Record-ID"]) }

// ResponseID is the id of the record of the same visit that has the answer, "" if the record does not say.
func (r *Record) ResponseID() string { return unbracket(r.Fields["WARC-Concurrent-To"]) }

func unbracket(id string) string { return strings.TrimSuffix(strings.TrimPrefix(id, "<"), ">") }

const (
	maxHead  = 1 << 20 // bytes of a record's head: more is damage
	maxBlock = 4 << 30
)

// ErrTorn is a file that ends within a record.
var ErrTorn = errors.New("the file ends within a record")

// A Reader reads a WARC file record by record, each a member of its own, and checks all that a record says of itself.
type Reader struct {
	src  io.ReaderAt
	size int64
	most int64 // bytes of a block that is read
	at   int64 // of the next record
	open member
	in   *bufio.Reader // compressed
	text *bufio.Reader
	rec  Record
}

// NewReader returns a reader of the first size bytes of src; the file's name says how it is compressed.
func NewReader(src io.ReaderAt, size int64, name string) (*Reader, error) {
	return newReader(src, size, name, 64<<10)
}

// NewSkimmer is NewReader for who skips most records: it reads little ahead.
func NewSkimmer(src io.ReaderAt, size int64, name string) (*Reader, error) {
	return newReader(src, size, name, 4<<10)
}

func newReader(src io.ReaderAt, size int64, name string, ahead int) (*Reader, error) {
	r := &Reader{src: src, size: size, most: maxBlock, in: bufio.NewReaderSize(nil, ahead),
		text: bufio.NewReaderSize(nil, 64<<10)}
	switch name = strings.TrimSuffix(name, open); {
	case strings.HasSuffix(name, extensions["gzip"]):
		r.open = &gzipMember{}
	case strings.HasSuffix(name, extensions["zstd"]):
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
		if err != nil {
			return nil, err
		}
		r.open = &zstdMember{z: z}
	default:
		return nil, fmt.Errorf("%s: not a compressed WARC file", name)
	}
	return r, nil
}

// ErrTooLong is a record whose block is longer than the reader was told to read.
var ErrTooLong = errors.New("it is longer than is read here")

// SetLimit has the reader read no block of more bytes.
func (r *Reader) SetLimit(most int64) { r.most = min(most, maxBlock) }

// Offset is where the next record begins.
func (r *Reader) Offset() int64 { return r.at }

// SeekTo makes the record that begins at a place the next.
func (r *Reader) SeekTo(at int64) { r.at = at }

// Next returns the next record: io.EOF when there is none. After another error Skip leads to the next record that can
// be read.
func (r *Reader) Next() (*Record, error) {
	if r.at >= r.size {
		return nil, io.EOF
	}
	src := r.from(r.at)
	if err := r.read(src); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = ErrTorn
		}
		return nil, err
	}
	r.rec.Offset, r.rec.Length = r.at, src.n
	r.at += src.n
	return &r.rec, r.rec.check()
}

func (r *Reader) from(at int64) *counted {
	r.in.Reset(io.NewSectionReader(r.src, at, r.size-at))
	return &counted{r: r.in}
}

// Skip goes to the next place, behind the record that could not be read, where a member begins that is a WARC record;
// the file's end if there is none.
func (r *Reader) Skip() {
	for {
		r.at++
		src := r.from(r.at)
		for {
			head, err := src.r.Peek(magicLen)
			if err != nil {
				r.at = r.size
				return
			}
			if r.open.canBegin(head) {
				break
			}
			_, _ = src.ReadByte() // which Peek has seen
		}
		r.at += src.n
		text, err := r.open.open(r.from(r.at))
		var begin [len(versionLine)]byte
		if err == nil {
			_, err = io.ReadFull(text, begin[:])
		}
		if err == nil && string(begin[:]) == versionLine {
			return
		}
	}
}

const versionLine = "WARC/1.1\r\n"

// read takes one member apart.
func (r *Reader) read(src *counted) error {
	text, err := r.open.open(src)
	if err != nil {
		return err
	}
	in := r.text
	in.Reset(text)
	if err := r.rec.readHead(in); err != nil {
		return err
	}
	n, err := strconv.ParseInt(r.rec.Fields["Content-Length"], 10, 64)
	if err != nil || n < 0 || n > maxBlock {
		return fmt.Errorf("its Content-Length is %q", r.rec.Fields["Content-Length"])
	}
	if n > r.most {
		return ErrTooLong
	}
	if r.rec.Block, err = vfs.ReadN(in, r.rec.Block[:0], int(n)); err != nil {
		return err
	}
	end, err := io.ReadAll(io.LimitReader(in, 1<<10)) // to the member's end, where its checksum is
	if err == nil && !bytes.Equal(end, recordEnd) {
		err = fmt.Errorf("its block of %d bytes is followed by %.20q", n, end)
	}
	return err
}

func (r *Record) readHead(in *bufio.Reader) error {
	r.Fields = make(map[string]string, 12)
	for total, first := 0, true; ; first = false {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}
		if total += len(line); total > maxHead {
			return errors.New("its head does not end")
		}
		text, ok := strings.CutSuffix(string(line), "\r\n")
		switch name, value, isField := strings.Cut(text, ": "); {
		case first && text+"\r\n" == versionLine:
		case first || !ok:
			return fmt.Errorf("its head has the line %.60q", line)
		case text == "":
			return nil
		case !isField:
			return fmt.Errorf("its head has the line %.60q", line)
		default:
			r.Fields[name] = value
		}
	}
}

// check compares the digests of the block, and of the payload where the block has just that, with what the head says.
func (r *Record) check() error {
	for _, name := range []string{"WARC-Type", "WARC-Record-ID", "WARC-Date", "WARC-Block-Digest"} {
		if r.Fields[name] == "" {
			return fmt.Errorf("it has no %s", name)
		}
	}
	if got := string(appendDigest(nil, sha1.Sum(r.Block))); got != r.Fields["WARC-Block-Digest"] {
		return fmt.Errorf("its block has the digest %s, its head says %s", got, r.Fields["WARC-Block-Digest"])
	}
	want := r.Fields["WARC-Payload-Digest"]
	if r.Fields["WARC-Type"] != "response" || want == "" {
		return nil
	}
	payload := r.Block
	for range maxInterim {
		_, payload = cutHead(payload)
		if string(appendDigest(nil, sha1.Sum(payload))) == want {
			return nil
		}
	}
	return fmt.Errorf("its payload has another digest than %s, which its head says", want)
}

const maxInterim = 8 // heads before the payload: those of interim answers, too

// Status is that of the answer in the block: 0 if it does not begin with a status line.
func (r *Record) Status() int {
	line, _, _ := bytes.Cut(r.Block[:min(len(r.Block), 100)], []byte("\n"))
	f := bytes.Fields(line)
	if len(f) < 2 || !bytes.HasPrefix(f[0], []byte("HTTP/")) {
		return 0
	}
	n, err := strconv.Atoi(string(f[1]))
	if err != nil {
		return 0
	}
	return n
}

// cutHead parts an HTTP message at its first blank line, however lines end there.
func cutHead(b []byte) (head, rest []byte) {
	end := len(b)
	for _, blank := range []string{"\n\r\n", "\n\n"} {
		if i := bytes.Index(b[:end], []byte(blank)); i >= 0 {
			end = i + len(blank)
		}
	}
	return b[:end], b[end:]
}

// counted counts what is taken from a buffered reader, and lets gzip take no more than it needs.
type counted struct {
	r *bufio.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counted) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}
