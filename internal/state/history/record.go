package history

import (
	"errors"
	"strings"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
)

// HashSize is the length of a Hash in bytes. With 10¹⁰ URLs, the probability that two have the same hash is 10⁻¹⁴. It
// is the largest size for which a run needs at most two extra bytes.
const HashSize = 14

// A Hash identifies a URL.
type Hash [HashSize]byte

// HashOf returns the hash of a canonical URL.
func HashOf(url string) (h Hash) {
	id := xor.Of("url", url)
	copy(h[:], id[:])
	return h
}

// A URL is the history's data of a URL.
type URL struct {
	Hash Hash
	Done bool
	Data []byte // data for dispatching it: the URL, its depth…; at most MaxData bytes; nil if it is done
}

// A Record contains a host and some of its URLs.
type Record struct {
	Host string
	URLs []URL
}

// Limits of a record, in bytes.
const (
	MaxName = 512 // of a host's name
	MaxData = 64 << 10
)

// ErrRecord reports a record that is invalid or exceeds the limits.
var ErrRecord = errors.New("invalid record of URLs")

// check returns an error if the record exceeds the limits.
func (r *Record) check() error {
	if r.Host == "" || len(r.Host) > MaxName || strings.IndexByte(r.Host, 0) >= 0 ||
		r.Host[0] == 0xff {
		return ErrRecord
	}
	for i := range r.URLs {
		if len(r.URLs[i].Data) > MaxData {
			return ErrRecord
		}
	}
	return nil
}

// appendRecord appends the journal's encoding of a record.
func appendRecord(b []byte, r *Record) []byte {
	w := varint.Writer(b)
	w.String(r.Host)
	w.Uint(uint64(len(r.URLs)))
	for i := range r.URLs {
		u := &r.URLs[i]
		w = append(w, u.Hash[:]...)
		if w.Bool(u.Done); !u.Done {
			w.Bytes(u.Data)
		}
	}
	return w
}

// readRecord decodes a record, which must be all of b. Data share the memory of b. It allocates at most about four
// times the size of b.
func readRecord(b []byte) (r Record, err error) {
	in := varint.Reader{Rest: b}
	r.Host = in.String()
	n := in.Uint()
	if in.Bad || n > uint64(len(in.Rest))/(HashSize+1) {
		return Record{}, ErrRecord
	}
	r.URLs = make([]URL, n)
	for i := range r.URLs {
		u := &r.URLs[i]
		copy(u.Hash[:], in.Take(HashSize))
		if u.Done = in.Bool(); !u.Done {
			u.Data = in.Bytes()
		}
	}
	if !in.Complete() || r.check() != nil {
		return Record{}, ErrRecord
	}
	return r, nil
}
