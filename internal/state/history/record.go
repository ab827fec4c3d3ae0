package history

import (
	"errors"
	"slices"
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

	// Which visit to the URL this is about: 0 for the first, and more for each later one.
	Visit     uint64
	Scheduled bool // the visit, which is not the first, is not to be dispatched yet
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
		u := &r.URLs[i]
		if len(u.Data) > MaxData || u.Scheduled && (u.Done || u.Visit == 0) {
			return ErrRecord
		}
	}
	return nil
}

// revisits reports whether a record is about visits that are not the first.
func (r *Record) revisits() bool {
	return slices.ContainsFunc(r.URLs, func(u URL) bool { return u.Visit > 0 })
}

// appendRecord appends the journal's encoding of a record, of the kind entryVisits if it revisits.
func appendRecord(b []byte, r *Record) []byte {
	w, revisits := varint.Writer(b), r.revisits()
	w.String(r.Host)
	w.Uint(uint64(len(r.URLs)))
	for i := range r.URLs {
		u := &r.URLs[i]
		w = append(w, u.Hash[:]...)
		if revisits {
			w.Bytes(valueOf(u).append(nil))
			continue
		}
		if w.Bool(u.Done); !u.Done {
			w.Bytes(u.Data)
		}
	}
	return w
}

// readRecord decodes a record, which must be all of b; visits: of the kind entryVisits. Data share the memory of b. It
// allocates at most about five times the size of b.
func readRecord(b []byte, visits bool) (r Record, err error) {
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
		if visits {
			v, ok := readValue(in.Bytes())
			in.Bad = in.Bad || !ok
			*u = urlOf(u.Hash, v)
			continue
		}
		if u.Done = in.Bool(); !u.Done {
			u.Data = in.Bytes()
		}
	}
	if !in.Complete() || r.check() != nil {
		return Record{}, ErrRecord
	}
	return r, nil
}
