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
	"kumo/internal/content/inflate"
)

// A Record is a record of a WARC file. Its contents are valid until the next record is read.
type Record struct {
	Offset, Length int64             // of its member in the file
	Fields         map[string]string // of its head; the last value of a repeated field
	Block          []byte
}

// ID returns the record's id without angle brackets.
func (r *Record) ID() string { return unbracket(r.Fields["WARC-Record-ID"]) }

// ResponseID returns the id of the response record of the same visit, or "" if the record does not contain it.
func (r *Record) ResponseID() string {
	if r.Fields["WARC-Type"] == "conversion" {
		return unbracket(r.Fields["WARC-Refers-To"])
	}
	return unbracket(r.Fields["WARC-Concurrent-To"])
}

// IsUnmodified reports whether the record is a visit for which the server has said that the page is as it was (304).
func (r *Record) IsUnmodified() bool { return r.Fields["WARC-Profile"] == notModified }

// BeginsVisit reports whether the record is the first of a visit: a response, a revisit, or the bytes of an answer that
// is not HTTP. Pictures of rendered pages are resources, too, but belong to a response before them.
func (r *Record) BeginsVisit() bool {
	switch r.Fields["WARC-Type"] {
	case "response", "revisit":
		return true
	case "resource":
		return r.Fields["WARC-Concurrent-To"] == ""
	}
	return false
}

// PageURI returns the target of the page to which a record belongs; documents and pictures of rendered pages have URNs
// that contain it.
func (r *Record) PageURI() string {
	uri := r.Fields["WARC-Target-URI"]
	if r.Fields["WARC-Type"] == "conversion" {
		return strings.TrimPrefix(uri, DocumentURN)
	}
	if r.Fields["WARC-Type"] != "resource" || r.BeginsVisit() {
		return uri
	}
	_, uri, _ = strings.Cut(strings.TrimPrefix(uri, "urn:"), ":")
	return uri
}

func unbracket(id string) string { return strings.TrimSuffix(strings.TrimPrefix(id, "<"), ">") }

const (
	maxHead  = 1 << 20 // bytes; a longer head is treated as damaged
	maxBlock = 4 << 30
)

// ErrTorn reports a file that ends within a record.
var ErrTorn = errors.New("the file ends within a record")

// A Reader reads a WARC file with one member per record, and verifies digests and lengths.
type Reader struct {
	src  io.ReaderAt
	size int64
	most int64 // maximum length of a block, in bytes
	at   int64 // offset of the next record
	open member
	in   *bufio.Reader // compressed data
	from int64         // offset at which the reading of in began
	took counted       // the bytes read since then
	text *bufio.Reader
	rec  Record
}

// ahead is the number of bytes that a Reader reads at once. Members up to this length are decoded fastest.
const ahead = 128 << 10

// NewReader returns a Reader of the first size bytes of src. The extension of the file name determines the compression.
func NewReader(src io.ReaderAt, size int64, name string) (*Reader, error) {
	return newReader(src, size, name, ahead, new(inflate.Decoder))
}

// NewSkimmer is NewReader for callers that skip most records: it reads ahead less.
func NewSkimmer(src io.ReaderAt, size int64, name string) (*Reader, error) {
	return newReader(src, size, name, 4<<10, nil)
}

func newReader(src io.ReaderAt, size int64, name string, ahead int, whole *inflate.Decoder) (*Reader, error) {
	r := &Reader{src: src, size: size, most: maxBlock, in: bufio.NewReaderSize(nil, ahead),
		text: bufio.NewReaderSize(nil, 64<<10)}
	switch name = strings.TrimSuffix(name, open); {
	case strings.HasSuffix(name, extensions["gzip"]):
		r.open = &gzipMember{whole: whole}
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

// ErrTooLong reports a record whose block exceeds the limit of the Reader.
var ErrTooLong = errors.New("record exceeds the length limit")

// SetLimit sets the maximum length of a block, in bytes. Longer blocks return ErrTooLong.
func (r *Reader) SetLimit(most int64) { r.most = min(most, maxBlock) }

// Offset returns the offset of the next record.
func (r *Reader) Offset() int64 { return r.at }

// SeekTo sets the offset of the next record.
func (r *Reader) SeekTo(at int64) { r.at = at }

// Next returns the next record, or io.EOF at the end. After another error, the caller may call Skip to find the next
// readable record.
func (r *Reader) Next() (*Record, error) {
	if r.at >= r.size {
		return nil, io.EOF
	}
	src := r.readFrom(r.at)
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

// readFrom returns a reader of the file from an offset. It is valid until the next call.
func (r *Reader) readFrom(at int64) *counted {
	ahead := at - r.from - r.took.n
	if r.took.r == nil || ahead < 0 || ahead > int64(r.in.Buffered()) {
		r.in.Reset(io.NewSectionReader(r.src, at, r.size-at))
	} else {
		_, _ = r.in.Discard(int(ahead)) // from the buffer
	}
	r.from, r.took = at, counted{r: r.in}
	return &r.took
}

// Skip moves on from a record that could not be read, to the next member that begins with a WARC record, or to the end
// of the file.
func (r *Reader) Skip() {
	for {
		r.at++
		src := r.readFrom(r.at)
		for {
			head, err := src.r.Peek(magicLen)
			if err != nil {
				r.at = r.size
				return
			}
			if r.open.canBegin(head) {
				break
			}
			_, _ = src.ReadByte() // cannot fail after Peek
		}
		r.at += src.n
		text, err := r.open.decode(r.readFrom(r.at))
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

// read decodes one member.
func (r *Reader) read(src *counted) error {
	text, err := r.open.decode(src)
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
		return fmt.Errorf("invalid Content-Length %q", r.rec.Fields["Content-Length"])
	}
	if n > r.most {
		return ErrTooLong
	}
	if r.rec.Block, err = vfs.ReadN(in, r.rec.Block[:0], int(n)); err != nil {
		return err
	}
	end, err := io.ReadAll(io.LimitReader(in, 1<<10)) // up to the end of the member, to verify its checksum
	if err == nil && !bytes.Equal(end, recordEnd) {
		err = fmt.Errorf("block of %d bytes is followed by %.20q", n, end)
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
			return errors.New("record head is too long")
		}
		text, ok := strings.CutSuffix(string(line), "\r\n")
		switch name, value, isField := strings.Cut(text, ": "); {
		case first && text+"\r\n" == versionLine:
		case first || !ok:
			return fmt.Errorf("record head has an invalid line: %.60q", line)
		case text == "":
			return nil
		case !isField:
			return fmt.Errorf("record head has an invalid line: %.60q", line)
		default:
			r.Fields[name] = value
		}
	}
}

// check verifies the required fields and the digest of the block. For responses it also verifies the payload digest.
func (r *Record) check() error {
	for _, name := range []string{"WARC-Type", "WARC-Record-ID", "WARC-Date", "WARC-Block-Digest"} {
		if r.Fields[name] == "" {
			return fmt.Errorf("record head lacks %s", name)
		}
	}
	if got := string(appendDigest(nil, sha1.Sum(r.Block))); got != r.Fields["WARC-Block-Digest"] {
		return fmt.Errorf("block has digest %s, but its record head has %s", got, r.Fields["WARC-Block-Digest"])
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
	return fmt.Errorf("payload does not match the digest %s of its record head", want)
}

const maxInterim = 8 // maximum number of heads before the payload, including interim responses

// Status returns the status of the response in the block; 0 if it does not begin with a status line.
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

// cutHead splits an HTTP message after the first blank line, with any kind of line end.
func cutHead(b []byte) (head, rest []byte) {
	end := len(b)
	for _, blank := range []string{"\n\r\n", "\n\n"} {
		if i := bytes.Index(b[:end], []byte(blank)); i >= 0 {
			end = i + len(blank)
		}
	}
	return b[:end], b[end:]
}

// counted counts the bytes taken from a buffered reader. It implements io.ByteReader, so that gzip does not read ahead.
type counted struct {
	r *bufio.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// skip skips bytes that are in the buffer.
func (c *counted) skip(n int) {
	_, _ = c.r.Discard(n)
	c.n += int64(n)
}

func (c *counted) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}
