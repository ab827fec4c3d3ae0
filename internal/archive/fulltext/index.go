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
// All data that is read has a checksum or is bounded. A damaged index returns a [DamagedError]. It can be rebuilt,
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

// A Doc is a page to be indexed.
type Doc struct {
	URL    string
	Line   int64 // offset of its line in pages.jsonl
	Status int
	Time   time.Time // of the visit; of two documents with the same URL, the newer one counts
	Lang   string
	Type   string
	Title  string
	About  string // the page's description of itself
	Text   string
}

// A DamagedError means that an index is damaged or of another version, and must be rebuilt.
type DamagedError struct{ why string }

func (e *DamagedError) Error() string { return "the index is damaged: " + e.why }

func damagedf(format string, args ...any) error { return &DamagedError{fmt.Sprintf(format, args...)} }

// IsDamaged reports whether an error means that an index must be rebuilt.
func IsDamaged(err error) bool {
	_, is := errors.AsType[*DamagedError](err)
	return is
}

// ErrNoIndex means that a folder has no index.
var ErrNoIndex = errors.New("the full-text index does not exist")

const (
	manifestName   = "manifest.json"
	version        = 1
	fanIn          = 8       // segments of a level that are merged into one
	levelDocs      = 512     // documents in a segment of the lowest level; each higher level has fanIn times as many
	maxSegmentDocs = 1 << 20 // larger segments are not merged
	maxMergedDocs  = 2 << 20 // documents merged at once: a merge takes about 60 bytes of memory per document
)

// A manifest lists the current segments.
type manifest struct {
	Version  int           `json:"version"`
	ID       string        `json:"id"`   // unique ID of this index
	Next     int           `json:"next"` // first file number that is not used yet
	Segments []segmentInfo `json:"segments"`
	Langs    []string      `json:"langs"` // languages of the documents, as far as they are stemmed
}

type segmentInfo struct {
	Name    string `json:"name"`
	Docs    int    `json:"docs"`
	Dead    int    `json:"dead,omitempty"`
	Deleted string `json:"deleted,omitempty"` // file with the bitmap of deleted documents
	Tokens  int64  `json:"tokens"`
	Bytes   int64  `json:"bytes"`
}

func (s *segmentInfo) live() int { return s.Docs - s.Dead }

// readManifest reads the manifest. It returns ErrNoIndex if there is none.
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
		return m, damagedf("cannot parse %s", manifestName)
	}
	if m.Version != version {
		return m, damagedf("version %d of the index is not supported by this kumo, which uses version %d", m.Version, version)
	}
	for _, s := range m.Segments {
		if strings.ContainsAny(s.Name+s.Deleted, `/\`) || s.Docs < 1 || s.Dead < 0 || s.Dead > s.Docs {
			return m, damagedf("%s: invalid segment %q", manifestName, s.Name)
		}
	}
	return m, nil
}

// An Index is an index that is open for writing, by one goroutine of one process.
type Index struct {
	disk  vfs.FS
	dir   string
	man   manifest
	words words.Splitter
	dirty bool // an operation has failed and may have left files
}

// Open opens an index for writing, and creates it if it does not exist.
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

// check opens all files of the manifest.
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

// removeUnlisted removes files that the manifest does not list.
func (x *Index) removeUnlisted() {
	keep := map[string]bool{manifestName: true}
	for _, s := range x.man.Segments {
		keep[s.Name], keep[s.Deleted] = true, true
	}
	names, _ := x.disk.List(x.dir) // leftover files do no harm
	for _, name := range names {
		if !keep[name] && isOurs(name) {
			_ = x.disk.Remove(filepath.Join(x.dir, name))
		}
	}
}

// ID returns the unique ID of an index, which stays the same until the index is removed. It returns "" if there is no
// index or if it cannot be read.
func ID(disk vfs.FS, dir string) (string, error) {
	m, err := readManifest(disk, dir)
	if errors.Is(err, ErrNoIndex) || IsDamaged(err) {
		return "", nil
	}
	return m.ID, err
}

// Remove removes an index: first files of other packages next to it, then the manifest, then the rest. If it is
// interrupted, the index is either complete or has no manifest.
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

// isOurs reports whether a file has the name of a file of an index.
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

// checksumLine returns the last line of a manifest, its checksum.
func checksumLine(data []byte) string { return fmt.Sprintf("%08x\n", sum(data)) }

const (
	segmentEnding = ".seg"
	deletedEnding = ".del"
)

func (x *Index) newName(ending string) string {
	x.man.Next++
	return fmt.Sprintf("%08d%s", x.man.Next-1, ending)
}

// Docs returns the number of documents.
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

// Put adds a batch, in which each URL occurs once. When it returns nil, the documents are durable, except those for
// which the index has a newer one. After an error the batch can be put again.
func (x *Index) Put(ctx context.Context, docs []Doc) error {
	was := x.man
	was.Segments = slices.Clone(x.man.Segments)
	if err := x.put(docs); err != nil {
		next := x.man.Next // file names are not reused
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

// dropEmptySegments removes segments without documents from the manifest.
func (x *Index) dropEmptySegments(old *[]string) {
	x.man.Segments = slices.DeleteFunc(x.man.Segments, func(s segmentInfo) bool {
		if s.live() == 0 {
			*old = append(*old, s.Name, s.Deleted)
			return true
		}
		return false
	})
}

// remove removes obsolete files. If the system does not remove them because they are open, the next Open does.
func (x *Index) remove(names []string) {
	for _, name := range names {
		_ = x.disk.Remove(filepath.Join(x.dir, name))
	}
}

// langOf returns the language whose stemmer is used for a document.
func langOf(tag string) string {
	tag, _, _ = strings.Cut(strings.ToLower(tag), "-")
	return tag
}

// findSuperseded returns the documents that are newer than those of the index, and the documents they replace, by
// segment name.
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

// A docSet is a bitmap of documents of a segment.
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
	defer func() { _ = f.Close() }() // opened for reading only
	data := make([]byte, len(b)+4)
	if err := readAt(f, data, 0); err != nil {
		return nil, err
	}
	copy(b, data)
	if sum(b) != binary.LittleEndian.Uint32(data[len(b):]) {
		return nil, damagedf("%s: wrong checksum", filepath.Base(name))
	}
	return b, nil
}

// A missingFile means that a file of the manifest is missing: the reader may have an old manifest.
type missingFile struct{ name string }

func (e *missingFile) Error() string { return filepath.Base(e.name) + " is missing" }
func (e *missingFile) Unwrap() error { return &DamagedError{e.Error()} }
