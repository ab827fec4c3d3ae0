package verify

import (
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"kumo/internal/base/extsort"
)

// A claim is a statement of a file about a URL.
type claim struct {
	url  []byte
	kind kind
	body []byte // depends on the kind
}

// A kind is the origin of a claim. A URL's claims are sorted by kind, so that those needed to check later ones come
// first.
type kind uint8

const (
	kindCapture      kind = iota + 1 // a response record
	kindLine                         // a line of a WARC file's index
	kindIndex                        // a line of index.cdxj
	kindReference                    // a revisit or the index of digests refers to a record
	kindPage                         // a line of pages.jsonl
	kindText                         // a line of text.jsonl
	kindFields                       // a line of fields.jsonl
	kindVisit                        // a line of crawl.log
	kindSkip                         // a line of skipped.jsonl
	kindDeferred                     // in state/deferred
	kindPending                      // in the frontier, or in the journal after it
	kindPendingDedup                 // not yet merged into the URL database
)

// A fact is the body of a claim. The kind determines which fields are used.
type fact struct {
	At     int64  // offset of the line or record
	File   int    // number of a WARC file, -1 for none
	Offset int64  // in that file
	Length int64  // of the record, or of the payload
	Time   int64  // in microseconds
	Status int    // of HTTP
	Flags  uint64 // the flags below
	ID     uint64 // hash of the record's ID; for a page or visit, of the media type
	Words  uint64 // hash of the data common to page line and metadata record; for an index, of the line
	Trail  uint64 // hash of the data common to visit and metadata record
	// Hash of the digest in a record, its index line and references to it, which is that of the encoded body.
	Sum    uint64
	Digest digest // of the decoded body
}

const (
	flagRevisit  = 1 << iota
	flagResource // not an HTTP response
	flagRobots
	flagWords     // Words and Trail are set
	flagAnswer    // a visit with a response
	flagPermanent // excluded for good
	flagFailed
	flagRecrawl // scheduled again
	flagDigests // from the index of digests
)

func (f *fact) has(flag uint64) bool { return f.Flags&flag != 0 }

// A digest is a SHA-1; zero if unknown.
type digest [20]byte

func (d digest) String() string { return base32.StdEncoding.EncodeToString(d[:]) }

func parseDigest(text string) (d digest, ok bool) {
	text, ok = strings.CutPrefix(text, "sha1:")
	if !ok || len(text) != 32 {
		return d, false
	}
	b, err := base32.StdEncoding.DecodeString(text)
	copy(d[:], b)
	return d, err == nil
}

func (f *fact) append(b []byte) []byte {
	for _, n := range []int64{f.At, int64(f.File), f.Offset, f.Length, f.Time, int64(f.Status), int64(f.Flags)} {
		b = binary.AppendVarint(b, n)
	}
	if f.ID|f.Words|f.Trail|f.Sum != 0 {
		for _, n := range []uint64{f.ID, f.Words, f.Trail, f.Sum} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
	}
	if f.Digest != (digest{}) {
		b = append(b, f.Digest[:]...)
	}
	return b
}

const hashes = 4 * 8 // bytes

func readFact(b []byte) (f fact) {
	var n [7]int64
	for i := range n {
		v, size := binary.Varint(b)
		n[i], b = v, b[max(size, 0):]
	}
	f = fact{At: n[0], File: int(n[1]), Offset: n[2], Length: n[3], Time: n[4], Status: int(n[5]), Flags: uint64(n[6])}
	if len(b) == hashes || len(b) == hashes+len(f.Digest) {
		f.ID, f.Words = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		f.Trail, f.Sum = binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
		b = b[hashes:]
	}
	copy(f.Digest[:], b)
	return f
}

// claim adds a claim.
func (v *verifier) claim(url string, k kind, f fact) error {
	var buf [128]byte
	return v.claims.add(url, k, f.append(buf[:0]))
}

var hashSeed = maphash.MakeSeed()

func hashOf(parts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	for _, p := range parts {
		_, _ = h.WriteString(p) // never fails
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

// A fileTable numbers WARC files by their final names.
type fileTable struct {
	names  []string
	number map[string]int
	all    []warcFile
}

type warcFile struct {
	present   bool
	unindexed bool  // its index is missing, which was reported
	unlisted  bool  // from a run that wrote no pages.jsonl
	lines     int64 // in its index
	merged    int64 // lines of index.cdxj that refer to it
}

func (t *fileTable) numberOf(name string) int {
	if n, ok := t.number[name]; ok {
		return n
	}
	if t.number == nil {
		t.number = map[string]int{}
	}
	n := len(t.names)
	t.number[name] = n
	t.names, t.all = append(t.names, name), append(t.all, warcFile{})
	return n
}

func (t *fileTable) path(n int) string { return "warc/" + t.names[n] }

// A sorter sorts claims. Claims that do not fit into memory are in a folder that close deletes. The key of a claim is
// its URL, the value is the kind followed by the body, so a URL's claims are in the order of their kinds.
type sorter struct {
	*extsort.Sorter
	dir string // created on the first write

	mu    sync.Mutex // guards adding
	value []byte
}

func newSorter(parent string, memory int) *sorter {
	if parent == "" {
		parent = os.TempDir()
	}
	dir := filepath.Join(parent, fmt.Sprintf("kumo-verify-%016x", rand.Uint64()))
	return &sorter{Sorter: extsort.New(extsort.Config{Dir: dir, Memory: memory}), dir: dir}
}

// add is safe for concurrent use.
func (s *sorter) add(url string, kind kind, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value = append(append(s.value[:0], byte(kind)), body...)
	return s.Add(0, []byte(url), s.value)
}

// sorted returns all claims in order. Then no more may be added.
func (s *sorter) sorted() (*claims, error) {
	m, err := s.Sorted(0)
	return &claims{m}, err
}

func (s *sorter) close() error { return errors.Join(s.Close(), os.RemoveAll(s.dir)) }

// claims iterates over claims in order. A claim is valid until the next one; io.EOF at the end.
type claims struct{ *extsort.Merge }

func (c *claims) next() (claim, error) {
	url, value, err := c.Next()
	if err != nil {
		return claim{}, err
	}
	return claim{url, kind(value[0]), value[1:]}, nil
}
