package history

import (
	"errors"
	"strings"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
)

// HashSize is the length of a Hash in bytes: so many that of 10¹⁰ URLs no two have the same, but with a chance of
// 10⁻¹⁴, and the most for which a run needs no more than two bytes beside.
const HashSize = 14

// A Hash stands for a URL.
type Hash [HashSize]byte

// HashOf is the hash of a canonical URL.
func HashOf(url string) (h Hash) {
	id := xor.Of("url", url)
	copy(h[:], id[:])
	return h
}

// A URL is what is known of one.
type URL struct {
	Hash Hash
	Done bool
	Data []byte // what it takes to have it fetched: the URL, its depth…; at most MaxData bytes; nil for one that is done
}

// A Record is what is known of a host and of some of its URLs.
type Record struct {
	Host string
	URLs []URL
}

// Bounds of what a record holds, in bytes.
const (
	MaxName = 512 // of a host's name
	MaxData = 64 << 10
)

// ErrRecord is bytes that are no records, or a record that no database takes.
var ErrRecord = errors.New("not a record of URLs")

// check refuses what cannot be written down.
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

// appendRecord appends a record as it is journalled.
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

// readRecord reads a record that is all there is. The record's Data are parts of b. It takes no more memory than some
// four times as much as b.
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
