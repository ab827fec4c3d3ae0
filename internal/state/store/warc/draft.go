package warc

import (
	"crypto/sha1"
	"encoding/base32"
	"fmt"
	"strconv"
	"sync"
	"time"

	"kumo/internal/base/vfs"
)

// A draft holds the records that one goroutine is building. Each is compressed and appended to out, which is then
// appended to a file.
type draft struct {
	packer
	out         []byte
	head        []byte // of the current record
	block       []byte // buffer for blocks built here
	line        []byte // CDXJ line
	visitFields []byte // WARC fields shared by all records of a visit
	wireFields  []byte // WARC fields shared by request and response
	payload     [sha1.Size]byte

	compression string
	scratch     *vfs.Scratch
	spool       *vfs.Spool // the output before out, if there is a long record; otherwise nil
	copyBuf     []byte     // for copying long blocks
	err         error      // of writing long records
}

// drafts is a pool of drafts.
type drafts struct{ pool sync.Pool }

func newDrafts(compression string, scratch *vfs.Scratch) (*drafts, error) {
	newPacker, ok := packers[compression]
	if !ok {
		return nil, fmt.Errorf("warc: unknown compression %q", compression)
	}
	return &drafts{sync.Pool{New: func() any {
		return &draft{packer: newPacker(), compression: compression,
			scratch: scratch}
	}}}, nil
}

func (p *drafts) get() *draft {
	d := p.pool.Get().(*draft)
	d.out, d.line, d.err = d.out[:0], d.line[:0], nil
	return d
}

const maxPooled = 1 << 20 // maximum memory of a pooled draft, in bytes

// put returns d to the pool, unless it has become too large.
func (p *drafts) put(d *draft) {
	if d.spool != nil {
		d.spool.Free()
		d.spool, d.copyBuf = nil, nil
	}
	if cap(d.out)+cap(d.block) <= maxPooled {
		p.pool.Put(d)
	}
}

// begin starts a record's head. An empty id is replaced by a new one.
func (d *draft) begin(kind, id string) {
	d.head = append(d.head[:0], "WARC/1.1\r\nWARC-Type: "...)
	d.head = append(d.head, kind...)
	d.head = append(d.head, "\r\nWARC-Record-ID: <"...)
	if id == "" {
		d.head = appendID(d.head)
	} else {
		d.head = append(d.head, id...)
	}
	d.head = append(d.head, ">\r\n"...)
}

// field adds a field with any value to the head. An empty value adds nothing.
func (d *draft) field(name, value string) { d.head = appendField(d.head, name, value) }

// url adds a field whose value is a URL.
func (d *draft) url(name, value string) {
	d.head = append(d.head, name...)
	d.head = append(d.head, ": "...)
	d.head = appendToken(d.head, value)
	d.head = append(d.head, "\r\n"...)
}

// ref adds a field with a record id, unless it is empty.
func (d *draft) ref(name, id string) {
	if id != "" {
		d.head = append(d.head, name...)
		d.head = append(d.head, ": <"...)
		d.head = appendText(d.head, id)
		d.head = append(d.head, ">\r\n"...)
	}
}

// date adds a field with a UTC time in microseconds, the finest precision that all WARC readers accept.
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

// end completes the record with its block, compresses it to out, and returns its compressed length. Blocks of up to
// small bytes are always compressed cheaply.
func (d *draft) end(contentType string, block []byte, small int) (length int64) {
	d.endHead(contentType, sha1.Sum(block), int64(len(block)))
	start := len(d.out)
	d.out = d.pack(d.out, d.head, block, len(block) > small && isText(block))
	return int64(len(d.out) - start)
}

// endHead completes a record's head with the digest, type and length of its block.
func (d *draft) endHead(contentType string, sum [sha1.Size]byte, length int64) {
	d.digest("WARC-Block-Digest", sum)
	d.field("Content-Type", contentType)
	d.head = append(d.head, "Content-Length: "...)
	d.head = strconv.AppendInt(d.head, length, 10)
	d.head = append(d.head, "\r\n\r\n"...)
}

func appendDigest(dst []byte, sum [sha1.Size]byte) []byte {
	return base32.StdEncoding.AppendEncode(append(dst, "sha1:"...), sum[:])
}
