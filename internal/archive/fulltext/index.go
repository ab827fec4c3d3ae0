// Package fulltext maintains a full-text index of a crawl's pages in a folder and searches it, best matches first.
//
// # Index
//
// A batch of documents becomes a segment, a file that never changes. A segment has the documents, their words with
// positions, and a hash of each URL. A manifest lists the current segments. It is replaced by renaming, so the folder
// always has the state of the last manifest, whenever a process ends. A newer document with the same URL marks the
// older one as deleted, in a bitmap next to its segment. Eight segments of similar size are merged into one without
// deleted documents, as in O'Neil et al., "The Log-Structured Merge-Tree" (1996).
//
// # Search
//
// Pages are ranked by BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009). Words in titles
// weigh more. One process writes, and any number of processes read at the same time, each with the manifest that it has
// read.
//
// All data that is read has a checksum or is bounded. A damaged index returns an [DamagedError]. It can be rebuilt,
// because all its data comes from the crawl.
package fulltext

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kumo/internal/archive/fulltext/words"
	"kumo/internal/base/vfs"
)

// A Doc is a page.
type Doc struct {
	URL    string
	Line   int64 // where its line begins in pages.jsonl
	Status int
	Time   time.Time // of the visit: of two with one URL the newer counts
	Lang   string
	Type   string
	Title  string
	About  string // what the page says of itself beside its title
	Text   string
}

// An DamagedError is an index that cannot be read, or is of another version. It is to be made anew.
type DamagedError struct{ why string }

func (e *DamagedError) Error() string { return "the index is damaged: " + e.why }

func damagedf(format string, args ...any) error { return &DamagedError{fmt.Sprintf(format, args...)} }

// IsDamaged reports whether an error says that an index is to be made anew.
func IsDamaged(err error) bool {
	_, is := errors.AsType[*DamagedError](err)
	return is
}

// ErrNoIndex is a folder without an index.
var ErrNoIndex = errors.New("there is no index")

const (
	manifestName   = "manifest.json"
	version        = 1
	fanIn          = 8       // segments of a level that are merged
	levelDocs      = 512     // documents of a segment of the lowest level; each above has fanIn times as many
	maxSegmentDocs = 1 << 20 // a segment that has more is merged with no other,
	maxMergedDocs  = 2 << 20 // and no more are merged at once: a merge takes some 60 bytes of memory a document
)

// A manifest says what counts.
type manifest struct {
	Version  int           `json:"version"`
	ID       string        `json:"id"`   // of this index alone
	Next     int           `json:"next"` // no file has this number yet
	Segments []segmentInfo `json:"segments"`
	Langs    []string      `json:"langs"` // whose words are stemmed, of which there were documents
}

type segmentInfo struct {
	Name    string `json:"name"`
	Docs    int    `json:"docs"`
	Dead    int    `json:"dead,omitempty"`
	Deleted string `json:"deleted,omitempty"` // the file that says which are dead
	Tokens  int64  `json:"tokens"`
	Bytes   int64  `json:"bytes"`
}

func (s *segmentInfo) live() int { return s.Docs - s.Dead }

// readManifest reads what counts; ErrNoIndex if there is none.
func readManifest(disk vfs.FS, dir string) (m manifest, err error) {
	data, err := vfs.ReadFile(disk, filepath.Join(dir, manifestName), 16<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return m, ErrNoIndex
	}
	if err != nil {
		return m, err
	}
	text, check, _ := bytes.Cut(data, []byte("\n"))
	if json.Unmarshal(text, &m) != nil || m.Version == version && string(check) != checksumLine(text) {
		return m, damagedf("%s cannot be read", manifestName)
	}
	if m.Version != version {
		return m, damagedf("it is of version %d, and this is kumo with version %d", m.Version, version)
	}
	for _, s := range m.Segments {
		if strings.ContainsAny(s.Name+s.Deleted, `/\`) || s.Docs < 1 || s.Dead < 0 || s.Dead > s.Docs {
			return m, damagedf("%s: segment %q", manifestName, s.Name)
		}
	}
	return m, nil
}

// An Index is one that is written. One goroutine uses it, of one process.
type Index struct {
	disk  vfs.FS
	dir   string
	man   manifest
	words words.Splitter
	dirty bool // a try failed, of which files may have stayed
}

// Open opens an index for writing, and makes one where there is none.
func Open(disk vfs.FS, dir string) (*Index, error) {
	x := &Index{disk: disk, dir: dir}
	var err error
	switch x.man, err = readManifest(disk, dir); {
	case errors.Is(err, ErrNoIndex):
		x.man = manifest{Version: version, ID: rand.Text(), Next: 1}
		if err = disk.MkdirAll(dir); err == nil {
			err = x.commit()
		}
	case err == nil:
		err = x.check()
	}
	if err != nil {
		return nil, err
	}
	x.removeUnlisted()
	return x, nil
}

// check opens all that the manifest names.
func (x *Index) check() error {
	for i := range x.man.Segments {
		s, err := openSegment(x.disk, x.dir, &x.man.Segments[i])
		if err != nil {
			return err
		}
		s.close()
	}
	return nil
}

// removeUnlisted removes files that do not count.
func (x *Index) removeUnlisted() {
	keep := map[string]bool{manifestName: true}
	for _, s := range x.man.Segments {
		keep[s.Name], keep[s.Deleted] = true, true
	}
	names, _ := x.disk.List(x.dir) // what is left over does no harm
	for _, name := range names {
		if !keep[name] && isOurs(name) {
			_ = x.disk.Remove(filepath.Join(x.dir, name))
		}
	}
}

// ID is what an index has from when it was made until it is removed, and no other has; "" if there is none, or it
// cannot be read.
func ID(disk vfs.FS, dir string) (string, error) {
	m, err := readManifest(disk, dir)
	if errors.Is(err, ErrNoIndex) || IsDamaged(err) {
		return "", nil
	}
	return m.ID, err
}

// Remove takes an index away: first what others have noted of it beside it, then the manifest, then the rest, so that
// wherever it ends there is all of the index, or nothing that says so.
func Remove(disk vfs.FS, dir string) error {
	names, err := disk.List(dir)
	if err != nil || len(names) == 0 {
		return err
	}
	order := func(name string) int {
		switch {
		case name == manifestName:
			return 1
		case isOurs(name):
			return 2
		}
		return 0
	}
	for step := range 3 {
		some := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return order(name) != step })
		for _, name := range some {
			if err := disk.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if len(some) == 0 {
			continue
		}
		if err := disk.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// isOurs is true of the files that a manifest names.
func isOurs(name string) bool {
	return strings.HasSuffix(name, segmentEnding) || strings.HasSuffix(name, deletedEnding)
}

func (x *Index) commit() error {
	data, err := json.Marshal(x.man)
	if err != nil {
		return err
	}
	return vfs.Replace(x.disk, filepath.Join(x.dir, manifestName), append(append(data, '\n'), checksumLine(data)...))
}

// checksumLine follows what is in a manifest.
func checksumLine(data []byte) string { return fmt.Sprintf("%08x\n", sum(data)) }

const (
	segmentEnding = ".seg"
	deletedEnding = ".del"
)

func (x *Index) newName(ending string) string {
	x.man.Next++
	return fmt.Sprintf("%08d%s", x.man.Next-1, ending)
}

// Docs is how many documents there are.
func (x *Index) Docs() (n int64) {
	for _, s := range x.man.Segments {
		n += int64(s.live())
	}
	return n
}

const hashBytes = 16

func hashOf(url string) [hashBytes]byte {
	h := sha256.Sum256([]byte(url))
	return [hashBytes]byte(h[:])
}

// Put takes a batch, of whose documents no two have one URL. When it returns nil, they are there for good, but for
// those of which a newer one is. After an error the batch may be put again.
func (x *Index) Put(ctx context.Context, docs []Doc) error {
	was := x.man
	was.Segments = slices.Clone(x.man.Segments)
	if err := x.put(docs); err != nil {
		next := x.man.Next // names are not given twice
		x.man = was
		x.man.Next = next
		x.dirty = true
		return err
	}
	if x.dirty {
		x.removeUnlisted()
		x.dirty = false
	}
	if err := x.merge(ctx); err != nil {
		x.dirty = true
		if ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (x *Index) put(docs []Doc) error {
	fresh, dead, err := x.findSuperseded(docs)
	if err != nil || len(fresh) == 0 {
		return err
	}
	name := x.newName(segmentEnding)
	info, err := x.build(name, fresh)
	if err != nil {
		return err
	}
	var old []string
	for i := range x.man.Segments {
		s := &x.man.Segments[i]
		if dead[s.Name] == nil {
			continue
		}
		if s.Deleted != "" {
			old = append(old, s.Deleted)
		}
		s.Deleted = x.newName(deletedEnding)
		s.Dead = dead[s.Name].count()
		if err := dead[s.Name].write(x.disk, filepath.Join(x.dir, s.Deleted)); err != nil {
			return err
		}
	}
	x.man.Segments = append(x.man.Segments, info)
	x.dropEmptySegments(&old)
	for _, d := range fresh {
		if l := langOf(d.Lang); words.Stems(l) && !slices.Contains(x.man.Langs, l) {
			x.man.Langs = append(x.man.Langs, l)
		}
	}
	if err := x.commit(); err != nil {
		return err
	}
	x.remove(old)
	return nil
}

// dropEmptySegments lets go of segments that have nothing any more.
func (x *Index) dropEmptySegments(old *[]string) {
	x.man.Segments = slices.DeleteFunc(x.man.Segments, func(s segmentInfo) bool {
		if s.live() == 0 {
			*old = append(*old, s.Name, s.Deleted)
			return true
		}
		return false
	})
}

// remove removes files that count no more. Where somebody reads them still and the system does not let go, the next to
// open the index removes them.
func (x *Index) remove(names []string) {
	for _, name := range names {
		_ = x.disk.Remove(filepath.Join(x.dir, name))
	}
}

// langOf is the language by whose rules a document's words are made.
func langOf(tag string) string {
	tag, _, _ = strings.Cut(strings.ToLower(tag), "-")
	return tag
}

// findSuperseded finds which documents are news, and what is dead by them in segments: by segment's name.
func (x *Index) findSuperseded(docs []Doc) (fresh []Doc, dead map[string]docSet, err error) {
	type hashed struct {
		hash [hashBytes]byte
		nth  int
	}
	all := make([]hashed, len(docs))
	for i := range docs {
		all[i] = hashed{hashOf(docs[i].URL), i}
	}
	slices.SortFunc(all, func(a, b hashed) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	stale := make([]bool, len(docs))
	dead = map[string]docSet{}
	for i := range x.man.Segments {
		s, err := openSegment(x.disk, x.dir, &x.man.Segments[i])
		if err != nil {
			return nil, nil, err
		}
		for _, h := range all {
			doc, at, err := s.find(h.hash)
			if err != nil {
				s.close()
				return nil, nil, err
			}
			switch {
			case doc < 0 || s.deleted.has(doc):
			case at > unix(docs[h.nth].Time):
				stale[h.nth] = true
			default:
				s.deleted.set(doc)
				dead[s.info.Name] = s.deleted
			}
		}
		s.close()
	}
	for i := range docs {
		if !stale[i] {
			fresh = append(fresh, docs[i])
		}
	}
	return fresh, dead, nil
}

func unix(t time.Time) uint32 { return uint32(min(max(t.Unix(), 0), math.MaxUint32)) } //nolint:gosec // it is within

// A docSet is a set of documents of a segment.
type docSet []byte

func newSet(n int) docSet       { return make(docSet, (n+7)/8) }
func (b docSet) has(i int) bool { return b[i>>3]&(1<<(i&7)) != 0 }
func (b docSet) set(i int)      { b[i>>3] |= 1 << (i & 7) }
func (b docSet) count() (n int) {
	for i := range len(b) * 8 {
		if b.has(i) {
			n++
		}
	}
	return n
}

func (b docSet) write(disk vfs.FS, name string) error {
	w, err := create(disk, name)
	if err != nil {
		return err
	}
	if err = w.write(binary.LittleEndian.AppendUint32(slices.Clone(b), sum(b))); err != nil {
		w.drop()
		return err
	}
	return w.finish()
}

func readSet(disk vfs.FS, name string, n int) (docSet, error) {
	b := newSet(n)
	f, err := disk.OpenAt(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &missingFile{name}
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read
	data := make([]byte, len(b)+4)
	if err := readAt(f, data, 0); err != nil {
		return nil, err
	}
	copy(b, data)
	if sum(b) != binary.LittleEndian.Uint32(data[len(b):]) {
		return nil, damagedf("%s: its checksum is wrong", filepath.Base(name))
	}
	return b, nil
}

// missingFile is a file that the manifest names, and that is not there: who reads may have read a manifest that is no more.
type missingFile struct{ name string }

func (e *missingFile) Error() string { return filepath.Base(e.name) + " is missing" }
func (e *missingFile) Unwrap() error { return &DamagedError{e.Error()} }
