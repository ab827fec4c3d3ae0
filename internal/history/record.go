package history

import (
	"errors"
	"math"
	"strings"
	"time"

	"kumo/internal/varint"
	"kumo/internal/xor"
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

// An Item is a URL that is claimed.
type Item struct {
	Hash Hash
	Data []byte // what it takes to have it fetched: the URL, its depth…; at most MaxData bytes
}

// A URL is what is known of one.
type URL struct {
	Hash Hash
	Done bool
	At   int64  // when it was dispatched, in Unix seconds; 0 for one that is done
	Data []byte // its Item's; nil for one that is done
}

// A Record is what is known of a host and of some of its URLs.
type Record struct {
	Host     string
	Target   string // to whom the host was assigned last; empty where nothing is said of that
	Assigned int64  // when, in Unix seconds: what was dispatched before counts as dispatched then
	URLs     []URL
}

// Bounds of what a record holds, in bytes.
const (
	MaxName = 512 // of a host's or a node's name
	MaxData = 64 << 10
)

// ErrRecord is bytes that are no records, or a record that no database takes.
var ErrRecord = errors.New("not a record of URLs")

// check refuses what cannot be written down.
func (r *Record) check() error {
	if r.Host == "" || len(r.Host) > MaxName || len(r.Target) > MaxName || strings.IndexByte(r.Host, 0) >= 0 ||
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

// AppendRecord appends a record as it is sent and journalled.
func AppendRecord(b []byte, r *Record) []byte {
	w := varint.Writer(b)
	w.String(r.Host)
	w.String(r.Target)
	w.Uint(uint64(seconds(r.Assigned)))
	w.Uint(uint64(len(r.URLs)))
	for i := range r.URLs {
		u := &r.URLs[i]
		w = append(w, u.Hash[:]...)
		if u.Done {
			w.Uint(0)
			continue
		}
		w.Uint(uint64(seconds(u.At)) + 1)
		w.Bytes(u.Data)
	}
	return w
}

// ReadRecord reads a record, and returns what follows it. The record's Data are parts of b. It takes no more memory
// than some four times as much as b.
func ReadRecord(b []byte) (r Record, rest []byte, err error) {
	in := varint.Reader{Rest: b}
	r.Host, r.Target = in.String(), in.String()
	r.Assigned = readSeconds(&in, 0)
	n := in.Uint()
	if in.Bad || n > uint64(len(in.Rest))/(HashSize+1) {
		return Record{}, nil, ErrRecord
	}
	r.URLs = make([]URL, n)
	for i := range r.URLs {
		u := &r.URLs[i]
		if len(in.Rest) < HashSize {
			return Record{}, nil, ErrRecord
		}
		in.Rest = in.Rest[copy(u.Hash[:], in.Rest):]
		if len(in.Rest) > 0 && in.Rest[0] == 0 {
			u.Done, in.Rest = true, in.Rest[1:]
			continue
		}
		u.At, u.Data = readSeconds(&in, 1), in.Bytes()
	}
	if in.Bad || r.check() != nil {
		return Record{}, nil, ErrRecord
	}
	return r, in.Rest, nil
}

// readSeconds reads a time that was written with more added to it.
func readSeconds(in *varint.Reader, more uint64) int64 {
	n := in.Uint() - more
	if n > math.MaxUint32 {
		in.Bad = true
	}
	return int64(n)
}

// seconds is a time as it is kept: from 1970 to 2106.
func seconds(unix int64) uint32 { return uint32(min(max(unix, 0), math.MaxUint32)) }

func secondsOf(t time.Time) uint32 { return seconds(t.Unix()) }
