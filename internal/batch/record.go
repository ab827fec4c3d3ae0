package batch

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"kumo/internal/base/varint"
)

// A Kind is the type of a record's value, stored in its first byte. It determines the output folder.
type Kind byte

// The kinds. The second byte of a value is the version of its encoding, except for Page and Other, which are XML after
// the first byte.
const (
	KindInURL    Kind = 'I' // a URL to fetch: [InURL], in in/ and wait/
	KindDocument Kind = 'D' // a result: [Document], in doc/
	KindOutLinks Kind = 'O' // links of a URL: [OutLinks], in out/
	KindKnown    Kind = 'K' // state of a URL: [Known], in known/
	KindRobots   Kind = 'R' // a robots.txt answer: [RobotsRecord], in robots/
	KindMove     Kind = 'M' // redirect of a seed: [Move], in moved/
	KindFetched  Kind = 'F' // internal to optimize: the key's URL was fetched
	KindPage     Kind = 'X' // an XML record of a page in its collection's language, in xml/
	KindOther    Kind = 'A' // same for another language, in other/
	KindFields   Kind = 'L' // a record extracted from a page, a line of JSON, in fields/
	KindTally    Kind = 'T' // fields found and missed on a page, a line of JSON, in tally/
)

// KindOf returns a value's kind; 0 if it is empty.
func KindOf(value []byte) Kind {
	if len(value) == 0 {
		return 0
	}
	return Kind(value[0])
}

// version is the version of all encodings.
const version = 1

// Errors of values that cannot be read.
var (
	// ErrVersion is the error for a record written by another version of kumo.
	ErrVersion = errors.New("a record of another version of kumo")
	// ErrDamaged is the error for a damaged record or file.
	ErrDamaged = errors.New("damaged")
)

// Key returns the key of a URL in a collection: the code, a space, the URL. Neither contains a space.
func Key(code, url string) []byte { return AppendKey(make([]byte, 0, len(code)+1+len(url)), code, url) }

// AppendKey appends a Key to b.
func AppendKey(b []byte, code, url string) []byte {
	return append(append(append(b, code...), ' '), url...)
}

// SplitKey splits a Key.
func SplitKey(key []byte) (code, url string, err error) {
	c, u, ok := bytes.Cut(key, []byte{' '})
	if !ok || len(c) == 0 || len(u) == 0 {
		return "", "", fmt.Errorf("key %.100q: %w", key, ErrDamaged)
	}
	return string(c), string(u), nil
}

// startValue appends the header of a value.
func startValue(b []byte, k Kind) varint.Writer { return append(b, byte(k), version) }

// openValue checks a value's header and returns a reader of its content.
func openValue(value []byte, k Kind) (*varint.Reader, error) {
	switch {
	case len(value) < 2 || Kind(value[0]) != k:
		return nil, fmt.Errorf("record without kind %c: %w", k, ErrDamaged)
	case value[1] != version:
		return nil, fmt.Errorf("kind %c, version %d: %w", k, value[1], ErrVersion)
	}
	return &varint.Reader{Rest: value[2:]}, nil
}

// openRecord is like openValue, and splits the record's key.
func openRecord(key, value []byte, k Kind, code, url *string) (r *varint.Reader, err error) {
	if *code, *url, err = SplitKey(key); err != nil {
		return nil, err
	}
	return openValue(value, k)
}

// checkRead returns an error unless the value was read to its end.
func checkRead(r *varint.Reader, k Kind) error {
	if !r.Complete() {
		return fmt.Errorf("kind %c: %w", k, ErrDamaged)
	}
	return nil
}

// putTime writes a time in microseconds; the zero time as 0.
func putTime(w *varint.Writer, t time.Time) {
	if t.IsZero() {
		w.Uint(0)
		return
	}
	us := t.UnixMicro()
	w.Uint(uint64(us)<<1 ^ uint64(us>>63) + 1)
}

func getTime(r *varint.Reader) time.Time {
	n := r.Uint()
	if n == 0 {
		return time.Time{}
	}
	n--
	return time.UnixMicro(int64(n>>1) ^ -int64(n&1)).UTC()
}

func putShare(w *varint.Writer, f float32) { w.Uint(uint64(math.Float32bits(f))) }

func getShare(r *varint.Reader) float32 { return math.Float32frombits(uint32(r.Uint())) }

func getArray[T ~[20]byte](r *varint.Reader) (a T) {
	b := r.Bytes()
	if len(b) != 0 && len(b) != len(a) {
		r.Bad = true
	}
	copy(a[:], b)
	return a
}

// putArray writes a digest; nothing if it is zero.
func putArray[T ~[20]byte](w *varint.Writer, a T) {
	if a == (T{}) {
		w.Uint(0)
		return
	}
	w.Bytes(a[:])
}

// flags encodes bools as the bits of a number, the first as the lowest.
func flags(all ...bool) (n uint64) {
	for i, on := range all {
		if on {
			n |= 1 << i
		}
	}
	return n
}
