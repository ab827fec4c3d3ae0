package batch

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"kumo/internal/base/varint"
)

// A Kind says what a record's value is. It is the first byte of the value, and decides where a job's output lies.
type Kind byte

// The kinds. The second byte of a value is the version of its form, but for Page and Apart, which are XML behind the
// first byte.
const (
	KindInURL    Kind = 'I' // a URL to be fetched: [InURL], in in/ and wait/
	KindDocument Kind = 'D' // a response: [Document], in doc/
	KindOutLinks Kind = 'O' // what a URL leads to: [OutLinks], in out/
	KindKnown    Kind = 'K' // what is known of a URL: [Known], in known/
	KindRobots   Kind = 'R' // what a robots.txt answered: [Rules], in robots/
	KindMove     Kind = 'M' // where a seed redirects to: [Move], in moved/
	KindFetched  Kind = 'F' // within optimize: the key's URL was fetched
	KindPage     Kind = 'X' // an XML record of a page in its collection's language, in xml/
	KindOther    Kind = 'A' // the same in another language, in other/
	KindFields   Kind = 'L' // a record that a rule has made of a page, a line of JSON, in fields/
	KindTally    Kind = 'T' // what rules have found on a page, likewise, in tally/
)

// KindOf is a value's kind; 0 of none.
func KindOf(value []byte) Kind {
	if len(value) == 0 {
		return 0
	}
	return Kind(value[0])
}

// version is that of all forms.
const version = 1

// Errors of values that cannot be read.
var (
	// ErrVersion is a record in the form of another version of kumo.
	ErrVersion = errors.New("a record of another version of kumo")
	// ErrDamaged is a record, or a file, that is not as it was written.
	ErrDamaged = errors.New("damaged")
)

// Key is the key of a URL in a collection: the code, a space, the URL. Neither has a space of its own.
func Key(code, url string) []byte { return AppendKey(make([]byte, 0, len(code)+1+len(url)), code, url) }

// AppendKey appends a Key.
func AppendKey(b []byte, code, url string) []byte {
	return append(append(append(b, code...), ' '), url...)
}

// SplitKey takes a Key apart.
func SplitKey(key []byte) (code, url string, err error) {
	c, u, ok := bytes.Cut(key, []byte{' '})
	if !ok || len(c) == 0 || len(u) == 0 {
		return "", "", fmt.Errorf("key %.100q: %w", key, ErrDamaged)
	}
	return string(c), string(u), nil
}

// begin begins a value.
func startValue(b []byte, k Kind) varint.Writer { return append(b, byte(k), version) }

// open opens a value of a kind.
func openValue(value []byte, k Kind) (*varint.Reader, error) {
	switch {
	case len(value) < 2 || Kind(value[0]) != k:
		return nil, fmt.Errorf("a record that should be of kind %c: %w", k, ErrDamaged)
	case value[1] != version:
		return nil, fmt.Errorf("kind %c, version %d: %w", k, value[1], ErrVersion)
	}
	return &varint.Reader{Rest: value[2:]}, nil
}

// openRecord opens the value of a URL's record, and takes its key apart.
func openRecord(key, value []byte, k Kind, code, url *string) (r *varint.Reader, err error) {
	if *code, *url, err = SplitKey(key); err != nil {
		return nil, err
	}
	return openValue(value, k)
}

// checkRead is the error of a value that was read to its end, or should have been.
func checkRead(r *varint.Reader, k Kind) error {
	if !r.Complete() {
		return fmt.Errorf("kind %c: %w", k, ErrDamaged)
	}
	return nil
}

// putTime writes a time to the microsecond; the zero time is 0.
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

// putArray writes a digest, nothing where it is zero.
func putArray[T ~[20]byte](w *varint.Writer, a T) {
	if a == (T{}) {
		w.Uint(0)
		return
	}
	w.Bytes(a[:])
}

// flags writes truth values as the bits of a number, the first as the lowest.
func flags(all ...bool) (n uint64) {
	for i, on := range all {
		if on {
			n |= 1 << i
		}
	}
	return n
}
