package item

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"kumo/internal/base/page"
	"kumo/internal/base/varint"
)

// An item is encoded as a frame: the length of the body, then the body. The body has, in this order: version, flags,
// kind, the counters if flagged, depth, and strings. The strings are the URL (without scheme and host if the reader
// knows its host), the seed, the page that links to it, the path, and the robots origin if flagged. Seed and page are
// encoded as the length of the prefix that they share with the URL, and the rest. Numbers are uvarints. Strings are
// preceded by their lengths.
//
// The lift (one byte) and a second byte of flags follow, with the counters that these flags announce. Zero bytes at the
// end are omitted. Later versions of kumo append new fields, which this version ignores. A change to the meaning of
// existing fields needs a new version number; other versions are refused.
const version = 1

const (
	flagScopeSeed = 1 << iota
	flagReported
	flagRecrawl
	flagQueueLast
	flagRobots
	flagCounts // redirects and tries follow
	flagHTTPS  // the URL is stored without "https://", host and slash
	flagHTTP   // the URL is stored without "http://", host and slash
)

// Flags of the second byte, after the lift.
const (
	flagRefetch   = 1 << iota
	flagRefetches // the number of refetches follows
	flagVain      // the number of pages in vain follows
	flagDeferred
)

var (
	// ErrVersion reports an item encoded in an unsupported version of the format.
	ErrVersion = errors.New("unsupported item version")
	// ErrDamaged reports an item whose encoding is damaged.
	ErrDamaged = errors.New("damaged item")
)

// Append appends the frame of an item. host is the item's host or slice if the reader will know it, otherwise "".
func Append(b []byte, host string, it *Item) []byte {
	at := len(b)
	b = AppendBody(append(b, 0, 0), host, it) // reserve two bytes: enough for most lengths, and valid for shorter ones
	if n := len(b) - at - 2; n < 1<<14 {
		b[at], b[at+1] = byte(n)|0x80, byte(n>>7)
	} else {
		b = slices.Replace(b, at, at+2, binary.AppendUvarint(nil, uint64(n))...)
	}
	return b
}

// AppendBody appends the body of an item, for callers with their own framing.
func AppendBody(b []byte, host string, it *Item) []byte {
	flags, url := it.flags(), it.URL
	host = HostOfSlice(host)
	if n := originLen("https://", host, url); n > 0 {
		flags, url = flags|flagHTTPS, url[n:]
	} else if n := originLen("http://", host, url); n > 0 {
		flags, url = flags|flagHTTP, url[n:]
	}
	b = append(b, version, flags, byte(it.Kind))
	if flags&flagCounts != 0 {
		b = append(b, it.Redirects, it.Tries)
	}
	b = binary.AppendUvarint(b, uint64(uint32(it.Depth)))
	b = appendString(b, url)
	b = appendSuffix(b, it.Seed, it.URL)
	b = appendSuffix(b, it.From, it.URL)
	b = appendString(b, it.Path)
	if flags&flagRobots != 0 {
		b = appendString(b, it.Robots)
	}
	more := flag(it.Refetch, flagRefetch) | flag(
		it.Refetch && it.Refetches > 0,
		flagRefetches,
	) | flag(it.Vain > 0, flagVain) |
		flag(it.Deferred, flagDeferred)
	if it.Lift != 0 || more != 0 {
		b = append(b, byte(it.Lift))
	}
	if more != 0 {
		b = append(b, more)
	}
	if more&flagRefetches != 0 {
		b = append(b, it.Refetches)
	}
	if more&flagVain != 0 {
		b = append(b, it.Vain)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendSuffix appends the length of the prefix that s shares with begin, then the rest of s.
func appendSuffix(b []byte, s, begin string) []byte {
	n := commonPrefix(s, begin)
	return appendString(binary.AppendUvarint(b, uint64(n)), s[n:])
}

// originLen returns the length of scheme, host and slash at the beginning of url, or 0 if url does not begin with them.
func originLen(scheme, host, url string) int {
	rest, is := strings.CutPrefix(url, scheme)
	if !is || host == "" || len(rest) <= len(host) || rest[len(host)] != '/' || rest[:len(host)] != host {
		return 0
	}
	return len(scheme) + len(host) + 1
}

func (it *Item) flags() byte {
	return flag(it.ScopeSeed, flagScopeSeed) | flag(
		it.Reported,
		flagReported,
	) | flag(it.Recrawl, flagRecrawl) | flag(
		it.QueueLast,
		flagQueueLast,
	) |
		flag(it.Robots != "", flagRobots) | flag(
		it.Redirects|it.Tries != 0,
		flagCounts,
	)
}

func flag(set bool, f byte) byte {
	if set {
		return f
	}
	return 0
}

// commonPrefix returns the length of the common prefix of two strings.
func commonPrefix(a, b string) int {
	n, i := min(len(a), len(b)), 0
	for ; i+8 <= n; i += 8 {
		if differ := firstEight(a[i:]) ^ firstEight(b[i:]); differ != 0 {
			return i + bits.TrailingZeros64(differ)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// firstEight returns the first eight bytes of s. The compiler turns it into a single load.
func firstEight(s string) uint64 {
	_ = s[7]
	return uint64(
		s[0],
	) | uint64(
		s[1],
	)<<8 | uint64(
		s[2],
	)<<16 | uint64(
		s[3],
	)<<24 | uint64(
		s[4],
	)<<32 | uint64(
		s[5],
	)<<40 | uint64(
		s[6],
	)<<48 | uint64(
		s[7],
	)<<56
}

// A Reader decodes items. The strings of an item share one allocation; if Share is set, so do those of several items.
// The zero Reader is ready to use.
type Reader struct {
	Share int // bytes allocated at once for strings; a retained item retains the whole allocation

	text strings.Builder
}

// Read decodes the frame at the beginning of b, which Append wrote for the same host. It returns the bytes after it.
func (r *Reader) Read(b []byte, host string) (it Item, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return Item{}, nil, ErrDamaged
	}
	it, err = r.ReadBody(b[size:size+int(n)], host)
	return it, b[size+int(n):], err
}

// ReadBody decodes a body that AppendBody wrote for the same host.
func (r *Reader) ReadBody(body []byte, host string) (Item, error) {
	if len(body) < 3 {
		return Item{}, ErrDamaged
	}
	if body[0] != version {
		return Item{}, fmt.Errorf("%w: %d", ErrVersion, body[0])
	}
	flags, f := body[1], varint.Reader{Rest: body[3:]}
	it := Item{Kind: page.Kind(body[2]), ScopeSeed: flags&flagScopeSeed != 0, Reported: flags&flagReported != 0,
		Recrawl: flags&flagRecrawl != 0, QueueLast: flags&flagQueueLast != 0}
	if flags&flagCounts != 0 {
		it.Redirects, it.Tries = f.Byte(), f.Byte()
	}
	depth := f.Uint()
	scheme := ""
	switch host = HostOfSlice(host); {
	case flags&flagHTTPS != 0:
		scheme = "https://"
	case flags&flagHTTP != 0:
		scheme = "http://"
	default:
		host = ""
	}
	root := len(scheme) + len(host)
	if scheme != "" {
		root++
	}
	url := f.Bytes()
	seedFrom, seed := f.Uint(), f.Bytes()
	fromFrom, from := f.Uint(), f.Bytes()
	path := f.Bytes()
	var robots []byte
	if flags&flagRobots != 0 {
		robots = f.Bytes()
	}
	length := uint64(root + len(url))
	if f.Bad || depth > math.MaxUint32 || seedFrom > length || fromFrom > length {
		return Item{}, ErrDamaged
	}
	it.Depth = int32(uint32(depth))
	if len(f.Rest) > 0 {
		it.Lift = int8(f.Rest[0])
	}
	if len(f.Rest) > 1 {
		it.readExtras(f.Rest[1], f.Rest[2:])
	}
	r.reserve(int(length) + joinedLen(seedFrom, seed) + joinedLen(fromFrom, from) + len(path) + len(robots))
	it.URL = r.string(scheme, host, root, url)
	it.Seed = r.join(it.URL[:seedFrom], seed)
	it.From = r.join(it.URL[:fromFrom], from)
	it.Path = r.join("", path)
	it.Robots = r.join("", robots)
	return it, nil
}

// readExtras decodes the second byte of flags and its counters.
func (it *Item) readExtras(flags byte, counts []byte) {
	it.Refetch, it.Deferred = flags&flagRefetch != 0, flags&flagDeferred != 0
	if it.Refetch && flags&flagRefetches != 0 && len(counts) > 0 {
		it.Refetches, counts = counts[0], counts[1:]
	}
	if flags&flagVain != 0 && len(counts) > 0 {
		it.Vain = counts[0]
	}
}

// LiftOf returns the lift of an encoded body, without decoding the rest. It returns 0 if the body is damaged.
func LiftOf(body []byte) int8 {
	if len(body) < 3 {
		return 0
	}
	flags, f := body[1], varint.Reader{Rest: body[3:]}
	if flags&flagCounts != 0 {
		f.Byte()
		f.Byte()
	}
	f.Uint() // depth
	f.Bytes()
	for range 2 { // seed, from
		f.Uint()
		f.Bytes()
	}
	f.Bytes() // path
	if flags&flagRobots != 0 {
		f.Bytes()
	}
	if f.Bad || len(f.Rest) == 0 {
		return 0
	}
	return int8(f.Rest[0])
}

// String copies b to a string that shares its allocation with the strings of items.
func (r *Reader) String(b []byte) string {
	r.reserve(len(b))
	return r.join("", b)
}

// reserve makes room for the strings of one item, so that the strings before it need not be copied.
func (r *Reader) reserve(n int) {
	if r.Share == 0 || r.text.Cap()-r.text.Len() < n {
		r.text.Reset()
		r.text.Grow(max(n, r.Share))
	}
}

func (r *Reader) string(scheme, host string, root int, rest []byte) string {
	at := r.text.Len()
	if root > 0 {
		r.text.WriteString(scheme)
		r.text.WriteString(host)
		r.text.WriteByte('/')
	}
	r.text.Write(rest)
	return r.text.String()[at:]
}

// joinedLen returns the number of bytes that join writes.
func joinedLen(begin uint64, rest []byte) int {
	if len(rest) == 0 {
		return 0
	}
	return int(begin) + len(rest)
}

// join returns begin followed by rest. If rest is empty, it returns begin without a copy.
func (r *Reader) join(begin string, rest []byte) string {
	if len(rest) == 0 {
		return begin
	}
	at := r.text.Len()
	r.text.WriteString(begin)
	r.text.Write(rest)
	return r.text.String()[at:]
}
