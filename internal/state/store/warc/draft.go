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

// A draft is where one goroutine puts records together: packed one by one into out, which is then appended to a file.
type draft struct {
	packer
	out         []byte
	head        []byte // of the record at work
	block       []byte // of a record whose block is made here
	line        []byte // of the index
	visitFields []byte // fields of all records of the visit
	wireFields  []byte // fields of those that went over the wire
	payload     [sha1.Size]byte

	compression string
	scratch     *vfs.Scratch
	spool       *vfs.Spool // where all that comes before out is, if there is a long record; otherwise nil
	copyBuf     []byte     // of a long block
	err         error      // of long records
}

// drafts is a pool of them.
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

const maxPooled = 1 << 20 // bytes of room that a draft keeps for the next visit

// put gives d back unless a huge answer has made it huge.
func (p *drafts) put(d *draft) {
	if d.spool != nil {
		d.spool.Free()
		d.spool, d.copyBuf = nil, nil
	}
	if cap(d.out)+cap(d.block) <= maxPooled {
		p.pool.Put(d)
	}
}

// begin starts a record's head; without an id it gets a new one.
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

// field adds a field to the head, whatever value holds, and leaves it out when value is empty.
func (d *draft) field(name, value string) { d.head = appendField(d.head, name, value) }

// url adds a field whose value is a URL.
func (d *draft) url(name, value string) {
	d.head = append(d.head, name...)
	d.head = append(d.head, ": "...)
	d.head = appendToken(d.head, value)
	d.head = append(d.head, "\r\n"...)
}

// ref adds a field whose value is a record's id, if there is one.
func (d *draft) ref(name, id string) {
	if id != "" {
		d.head = append(d.head, name...)
		d.head = append(d.head, ": <"...)
		d.head = appendText(d.head, id)
		d.head = append(d.head, ">\r\n"...)
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

// end completes the record with its block, packs it to out and returns its length there. A block of up to small bytes
// is packed in the cheap way, whatever it is.
func (d *draft) end(contentType string, block []byte, small int) (length int64) {
	d.endHead(contentType, sha1.Sum(block), int64(len(block)))
	start := len(d.out)
	d.out = d.pack(d.out, d.head, block, len(block) > small && isText(block))
	return int64(len(d.out) - start)
}

// endHead completes a record's head with what is known of its block.
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
