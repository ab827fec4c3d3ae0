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

	"kumo/internal/base/extsort"
)

// A claim is what a file says of a URL.
type claim struct {
	url  []byte
	kind kind
	body []byte // by kind
}

// A kind says where a claim comes from. A URL's claims come in the order of their kinds, so that what is needed to
// judge later ones is there.
type kind uint8

const (
	kindCapture      kind = iota + 1 // a record of an answer
	kindLine                         // a line of a file's index
	kindIndex                        // a line of index.cdxj
	kindReference                    // a revisit, or the index of digests, names a record
	kindPage                         // a line of pages.jsonl
	kindText                         // a line of text.jsonl
	kindFields                       // a line of fields.jsonl
	kindVisit                        // a line of crawl.log
	kindSkip                         // a line of skipped.jsonl
	kindDeferred                     // set aside
	kindPending                      // in the frontier, or in the journal's rest
	kindPendingDedup                 // seen has yet to say whether it is news
)

// A fact is what claims of all kinds are made of. Which of its fields mean something depends on the kind.
type fact struct {
	At     int64  // offset of the line or record that says so
	File   int    // a WARC file's number, -1 for none
	Offset int64  // there
	Length int64  // of the record, or of the payload
	Time   int64  // microseconds
	Status int    // HTTP
	Flags  uint64 // see below
	ID     uint64 // hash of a record's id; of a page and a visit, of the media type
	Words  uint64 // hash of what page line and metadata record both have; of an index, its line
	Trail  uint64 // hash of what visit and metadata record both have
	// hash of the digest that a record, its index line and what refers to it give: that of the body with its chunks
	Sum    uint64
	Digest digest // of the body
}

const (
	flagRevisit  = 1 << iota
	flagResource // bytes that are no HTTP answer
	flagRobots
	flagWords     // Words and Trail are known
	flagAnswer    // of a visit: one came
	flagPermanent // a rule that leaves a URL out for good
	flagFailed
	flagRecrawl // a recrawl
	flagDigests // of the index of digests
)

func (f *fact) has(flag uint64) bool { return f.Flags&flag != 0 }

// A digest is a SHA-1; zero if none is known.
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

// claim adds what a file says.
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
	unindexed bool  // there is no index of it, which has been said
	unlisted  bool  // made by a run that wrote no pages.jsonl
	lines     int64 // of its index
	merged    int64 // lines of index.cdxj that name it
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

// A sorter sorts claims: what memory does not hold goes to a folder that close removes. A claim's key is its URL, its
// value the kind and then the body: a URL's claims come in the order of their kinds.
type sorter struct {
	*extsort.Sorter
	dir   string // not there as long as nothing was written
	value []byte
}

func newSorter(parent string, memory int) *sorter {
	if parent == "" {
		parent = os.TempDir()
	}
	dir := filepath.Join(parent, fmt.Sprintf("kumo-verify-%016x", rand.Uint64()))
	return &sorter{Sorter: extsort.New(extsort.Config{Dir: dir, Memory: memory}), dir: dir}
}

func (s *sorter) add(url string, kind kind, body []byte) error {
	s.value = append(append(s.value[:0], byte(kind)), body...)
	return s.Add(0, []byte(url), s.value)
}

// sorted gives all claims in order. Nothing may be added any more.
func (s *sorter) sorted() (*claims, error) {
	m, err := s.Sorted(0)
	return &claims{m}, err
}

func (s *sorter) close() error { return errors.Join(s.Close(), os.RemoveAll(s.dir)) }

// Claims are in order, each valid until the next; io.EOF at the end.
type claims struct{ *extsort.Merge }

func (c *claims) next() (claim, error) {
	url, value, err := c.Next()
	if err != nil {
		return claim{}, err
	}
	return claim{url, kind(value[0]), value[1:]}, nil
}
